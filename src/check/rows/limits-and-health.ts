/** Limits of bodies and headers; health, metrics, the OpenAPI document and the pages. */
import {
  anonymous,
  closed,
  create,
  each,
  plant,
  type ResponseCheck,
  rowsOf,
  tooLarge,
} from "../row.ts";
import { notAllowed, publicPaths } from "./requests.ts";

const bodyBytesMax = 64 * 1024;
const sized = (padTo: number) => ({ request: "POST /plants", body: plant(1), padTo });
const withFiller = (bytes: number) => ({
  request: "GET /plants?limit=1",
  headers: { "X-Filler": "x".repeat(bytes) },
});
const hint = "a proxy may be waiting for the rest of the body";

const limitRows = rowsOf("limits", {
  "a body of 64 KiB is taken": [sized(bodyBytesMax), 201],
  "a body of one byte more is 413": [sized(bodyBytesMax + 1), tooLarge],
  "a body over 64 KiB is 413 before all of it has arrived": {
    hint: `${hint} (nginx: proxy_request_buffering off)`,
    steps: [
      create(plant(1), tooLarge, { "Content-Length": String(bodyBytesMax + 1) }),
      [{ request: "POST /plants", chunks: ['{"id":{1}}', " ".repeat(bodyBytesMax)] }, tooLarge],
    ],
  },
  "headers of 12 KiB are taken": [withFiller(12 * 1024), 200],
  "headers of more than 16 KiB are refused": [withFiller(20 * 1024), { status: [400, 431] }],
  "a body that does not arrive within 15 seconds is given up": {
    isSlow: true,
    hint: `${hint} (nginx: client_body_timeout 15s)`,
    steps: [create('{"id":{1}}', { status: [400, 408, closed] }, { "Content-Length": "100" })],
  },
  "RateLimit and a limit of requests in RateLimit-Policy come together": [
    "GET /plants?limit=1",
    {
      // A quota of plants has no window.
      skip: (response) =>
        response.header("RateLimit") || response.header("RateLimit-Policy")?.includes(";w=")
          ? undefined
          : "no rate limit is on",
      headers: { RateLimit: /;r=\d+/, "RateLimit-Policy": /;w=\d+/ },
    },
  ],
});

/** The documentation recommends that a proxy keeps /metrics from the public. */
const skip: ResponseCheck = (response) =>
  response.isFromProxy && [403, 404].includes(response.status)
    ? "a proxy blocks /metrics"
    : undefined;

const isPrometheusText: ResponseCheck = ({ text }) => {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const odd = lines.find((line) => !/^[a-zA-Z_:][\w:]*(?:\{.*\})? \S+(?: \d+)?$/.test(line));
  return lines.length > 0 && odd === undefined ? undefined : `this is not a sample: ${odd}`;
};

const healthRows = rowsOf("health", {
  "/healthz and /readyz are 200": each(["/healthz", "/readyz"], [anonymous("GET {each}"), 200]),
  "/metrics is Prometheus text, without a token, for GET and HEAD": [
    [
      anonymous("GET /metrics"),
      {
        skip,
        headers: { "Content-Type": /^text\/plain\b/, "Access-Control-Allow-Origin": null },
        check: isPrometheusText,
      },
    ],
    [anonymous("HEAD /metrics"), { same: ["status", "Content-Type"] }],
    [anonymous("POST /metrics"), notAllowed],
  ],
  "an unknown parameter of a public path is 400": each(publicPaths, [
    anonymous("GET {each}?color=green"),
    { errors: ["color"] },
  ]),
});

const isOpenapi: ResponseCheck = ({ json }) => {
  if (!/^3\.1\./.test(json?.openapi)) return `openapi is ${json?.openapi}`;
  const version = json.info?.version;
  if (!/^\d+\.\d+\.\d+/.test(version)) return `info.version is ${version}`;
  const { "/plants": plants, "/plants/{id}": plant, "/me": me } = json.paths ?? {};
  const needed = [plants?.get, plants?.post, plant?.get, plant?.delete, me?.get];
  if (!needed.every(Boolean)) return "paths lacks an operation";
  const schemes = Object.values<{ scheme?: string }>(json.components?.securitySchemes ?? {});
  const hasBearer = schemes.some(({ scheme }) => scheme === "bearer");
  return hasBearer ? undefined : "securitySchemes has no bearer scheme";
};

const hasBasePath: ResponseCheck = ({ json, request }) => {
  const [, basePath = ""] = /^GET (.*)\/openapi\.json /.exec(request) ?? [];
  const servers: { url: string }[] = json?.servers ?? [{ url: "/" }];
  const paths = servers.map(({ url }) => new URL(url, "http://service").pathname);
  const isThere = paths.some((path) => path.replace(/\/$/, "") === basePath);
  return isThere ? undefined : `servers are at ${paths.join(", ")}`;
};

const page = {
  headers: { "Content-Type": /^text\/html\b/, "Content-Security-Policy": /default-src/ },
};

const openapiRows = rowsOf("openapi", {
  "/openapi.json is OpenAPI 3.1, with a version, the operations and the bearer token": [
    anonymous("GET /openapi.json"),
    { headers: { "Content-Type": /^application\/json\b/ }, check: isOpenapi },
  ],
  "/openapi.json has an ETag, and is 304 for a client that has it": [
    [anonymous("GET /openapi.json"), { headers: { ETag: /^(?:W\/)?".+"$/ } }],
    [
      anonymous("GET /openapi.json", { headers: { "If-None-Match": "{etag}" } }),
      { status: 304, same: ["ETag"] },
    ],
    [anonymous("GET /openapi.json", { headers: { "If-None-Match": '"x"' } }), 200],
  ],
  "its server is the base path": [anonymous("GET /openapi.json"), { check: hasBasePath }],
  "/docs and / are pages": each(["/docs", "/"], [anonymous("GET {each}"), page]),
});

export const rows = [...limitRows, ...healthRows, ...openapiRows];
