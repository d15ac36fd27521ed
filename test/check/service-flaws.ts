/** Flaws of limits, and of what is served beside the plants. */
import { headerOf, type Serve } from "./broken-service.ts";
import {
  answers,
  asks,
  type Flaws,
  isDelete,
  isList,
  isOn,
  type Loose,
  make,
  rewrites,
  says,
  when,
  withHeader,
  without,
} from "./flaw.ts";

function documents(change: (document: Loose) => Loose): Serve {
  return when(isOn("GET", "/openapi.json"), answers(rewrites(change)));
}

export const serviceFlaws: Flaws = {
  "a body of 64 KiB is taken": {
    "takes 32": when((request) => request.body.length > 32 * 1024, says(413)),
    "takes one byte less": when((request) => request.body.length === 64 * 1024, says(413)),
  },
  "a declared length over 64 KiB is 413, before the body has come": {
    "waits for the rest": when(
      (request) => headerOf(request, "content-length") === "65537",
      () => new Promise(() => {}),
    ),
    "takes one byte more": when(
      (request) => headerOf(request, "content-length") === "65537",
      asks((request) => withHeader(request, "Content-Length", String(request.body.length))),
    ),
  },
  "chunks over 64 KiB are 413, before the last has come": {
    "counts declared lengths only": when(
      (request) => headerOf(request, "transfer-encoding") !== undefined,
      asks((request) => ({ ...request, body: Buffer.from("2\r\n{}\r\n0\r\n\r\n") })),
    ),
  },
  "the token comes before the size of the body": {
    "comes later": when(
      (request) => Number(headerOf(request, "content-length")) > 64 * 1024,
      says(413),
    ),
  },
  "headers of 12 KiB are taken": {
    "takes 8": when((request) => (headerOf(request, "x-filler") ?? "").length > 8_192, says(431)),
  },
  "headers of more than 16 KiB are refused": { "takes any": asks(without("X-Filler")) },
  "/healthz is 200 without a token": {
    "asks for one": when((request) => request.target.includes("healthz"), says(401)),
  },
  "/readyz is 200 without a token": {
    "is not ready": when(isOn("GET", "/readyz"), says(503)),
  },
  "/metrics is Prometheus text, without a token": {
    "is JSON": when(isOn("GET", "/metrics"), says(200, "{}")),
    "holds something else": when(
      isOn("GET", "/metrics"),
      answers((answer) => ({
        ...answer,
        body: Buffer.concat([answer.body, Buffer.from("hello world of plants\n")]),
      })),
    ),
  },
  "unknown parameters are 400 there too": {
    "drops them": when(
      isOn("GET", "/healthz"),
      asks((request) => ({ ...request, target: "/healthz" })),
    ),
  },
  "/openapi.json is JSON, without a token": {
    "is not there": when(isOn("GET", "/openapi.json"), says(404)),
    "is YAML": when(
      isOn("GET", "/openapi.json"),
      answers((answer) => ({ ...answer, body: Buffer.from("openapi: 3.1.0\n") })),
    ),
  },
  "it is OpenAPI 3.1": {
    "is 3.0": documents((document) => ({ ...document, openapi: "3.0.3" })),
  },
  "it has the version of the package": {
    "has none": documents(({ info, ...document }) => ({
      ...document,
      info: { title: info.title },
    })),
  },
  "it describes the three operations": {
    "leaves one out": documents(({ paths, ...document }) => {
      const { "/plants/{id}": _, ...rest } = paths;
      return { ...document, paths: rest };
    }),
  },
  "it says that a bearer token is needed": {
    "does not": documents(({ components: _, ...document }) => document),
  },
  "its server is the base path": {
    "is elsewhere": documents((document) => ({ ...document, servers: [{ url: "/v9" }] })),
  },
  "/docs is a page, without a token": {
    "is text": when(isOn("GET", "/docs"), says(200, "docs")),
    "has no policy": when(isOn("GET", "/docs"), async () =>
      withHeader(make(200, "<html>"), "Content-Type", "text/html"),
    ),
  },
  "/ is a page, without a token": {
    "asks for a token": when((request) => request.target === "/", says(401)),
  },
  "RateLimit and a limit of requests in RateLimit-Policy come together": {
    "one is missing": when(
      (request) => isList(request) || isDelete(request),
      answers((answer) => withHeader(answer, "RateLimit", '"token";r=9;t=1')),
    ),
  },
};
