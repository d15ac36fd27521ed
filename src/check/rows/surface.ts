/** Surface, health, OpenAPI: the paths, their methods, and what is at the public ones. */
import { anonymous, each, type ResponseCheck, rowsOf } from "../row.ts";
import type { ServiceResponse } from "../service.ts";

const publicPaths = ["/openapi.json", "/docs", "/", "/healthz", "/readyz"];
const allowOfPlants = { headers: { Allow: new Set(["GET", "HEAD", "POST", "OPTIONS"]) } };
const allowOfPlant = { headers: { Allow: new Set(["GET", "HEAD", "DELETE", "OPTIONS"]) } };
const allowOfMe = { headers: { Allow: new Set(["GET", "HEAD", "OPTIONS"]) } };
const notAllowed = { status: 405, headers: { Allow: new Set(["GET", "HEAD"]) } };

export const surfaceRows = rowsOf("surface", {
  "HEAD /plants is as GET, without a body": [
    ["GET /plants?limit=1", 200],
    ["HEAD /plants?limit=1", { same: ["status", "Content-Type"] }],
  ],
  "GET and HEAD of a public path need no token, and are alike but for the body": each(
    publicPaths,
    [anonymous("GET {each}"), 200],
    [anonymous("HEAD {each}"), { same: ["status", "Content-Type"] }],
  ),
  "any other path is 404": each(
    ["/nothing-here", "/plants/", "/plants/1/2", "/Plants", "/plants%2F1", "/docs/", "/assets/x"],
    ["GET {each}", 404],
  ),
  // Not DELETE: a service that accepts it might delete all plants.
  "another method on /plants is 405, with Allow": each(
    ["PUT", "PATCH"],
    [anonymous("{each} /plants"), { status: 405, ...allowOfPlants }],
  ),
  "another method on /plants/{id} is 405, with Allow": each(
    ["POST", "PUT", "PATCH"],
    [anonymous("{each} /plants/{1}"), { status: 405, ...allowOfPlant }],
  ),
  "another method on /me is 405, with Allow": each(
    ["POST", "PUT", "DELETE"],
    [anonymous("{each} /me"), { status: 405, ...allowOfMe }],
  ),
  "another method on a public path is 405, with Allow": each(
    publicPaths,
    [anonymous("POST {each}"), notAllowed],
    [anonymous("OPTIONS {each}"), notAllowed],
  ),
  "OPTIONS needs no token, and lists the methods in Allow": [
    [anonymous("OPTIONS /plants"), { status: 204, ...allowOfPlants }],
    [anonymous("OPTIONS /plants/{1}"), { status: 204, ...allowOfPlant }],
    [anonymous("OPTIONS /me"), { status: 204, ...allowOfMe }],
  ],
});

/** The documentation recommends that a proxy keeps /metrics from the public. */
const skip = (response: ServiceResponse) =>
  response.isFromProxy && [403, 404].includes(response.status)
    ? "a proxy blocks /metrics"
    : undefined;

const isPrometheusText: ResponseCheck = ({ text }) => {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const odd = lines.find((line) => !/^[a-zA-Z_:][\w:]*(?:\{.*\})? \S+(?: \d+)?$/.test(line));
  return lines.length > 0 && odd === undefined ? undefined : `this is not a sample: ${odd}`;
};

export const healthRows = rowsOf("health", {
  "/healthz and /readyz are 200": each(["/healthz", "/readyz"], [anonymous("GET {each}"), 200]),
  "/metrics is Prometheus text, without a token, for GET and HEAD": [
    [
      anonymous("GET /metrics"),
      { skip, headers: { "Content-Type": /^text\/plain\b/ }, check: isPrometheusText },
    ],
    [anonymous("HEAD /metrics"), { same: ["status", "Content-Type"] }],
    [anonymous("POST /metrics"), notAllowed],
  ],
  "an unknown parameter of a public path is 400": each(publicPaths, [
    anonymous("GET {each}?colour=green"),
    { errors: ["colour"] },
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

export const openapiRows = rowsOf("openapi", {
  "/openapi.json is OpenAPI 3.1, with a version, the operations and the bearer token": [
    anonymous("GET /openapi.json"),
    { headers: { "Content-Type": /^application\/json\b/ }, check: isOpenapi },
  ],
  "its server is the base path": [anonymous("GET /openapi.json"), { check: hasBasePath }],
  "/docs and / are pages": each(["/docs", "/"], [anonymous("GET {each}"), page]),
});
