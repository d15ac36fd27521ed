/** Limits, health and the OpenAPI document: what holds for the service as a whole. */
import { closed, create, each, open, plant, type ResponseCheck, rowsOf } from "../row.ts";

const bodyBytesMax = 64 * 1024;
const filler = (characters: number) => ({
  request: "GET /plants?limit=1",
  headers: { "X-Filler": "x".repeat(characters) },
});

export const limitRows = rowsOf("limits", {
  "a body of 64 KiB is taken": [
    { request: "POST /plants", body: plant(1), padTo: bodyBytesMax },
    201,
  ],
  "a body of one byte more is 413": [
    { request: "POST /plants", body: plant(1), padTo: bodyBytesMax + 1 },
    413,
  ],
  "a declared length over 64 KiB is 413, before the body has come": create(plant(1), 413, {
    "Content-Length": String(bodyBytesMax + 1),
  }),
  "chunks over 64 KiB are 413, before the last has come": [
    { request: "POST /plants", chunks: ['{"name":"{name}","id":{1}}', " ".repeat(bodyBytesMax)] },
    413,
  ],
  "the token is checked before the size of the body": [
    open("POST /plants", { body: "{", headers: { "Content-Length": String(bodyBytesMax + 1) } }),
    401,
  ],
  "headers of 12 KiB are taken": [filler(12 * 1024), 200],
  "headers of more than 16 KiB are refused": [filler(20 * 1024), { status: [400, 431] }],
  "a body that does not arrive within 15 seconds is given up": {
    isSlow: true,
    steps: [
      [
        {
          request: "POST /plants",
          body: "{",
          headers: { "Content-Length": "100" },
          timeoutMs: 25_000,
        },
        { status: [400, 408, closed] },
      ],
    ],
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

const isPrometheusText: ResponseCheck = ({ text }) => {
  if (!/^# TYPE \w+ \w+$/m.test(text)) return "there is no line # TYPE";
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const odd = lines.find((line) => !/^[a-zA-Z_:][\w:]*(?:\{.*\})? \S+(?: \d+)?$/.test(line));
  return odd === undefined ? undefined : `this is not a sample: ${odd}`;
};

export const healthRows = rowsOf("health", {
  "/healthz is 200 without a token": [open("GET /healthz"), 200],
  "/readyz is 200 without a token": [open("GET /readyz"), 200],
  "/metrics is Prometheus text, without a token": [
    open("GET /metrics"),
    { headers: { "Content-Type": /^text\/plain\b/ }, check: isPrometheusText },
  ],
  "unknown parameters are 400 there too": each(
    ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs", "/"],
    [open("GET {each}?colour=green"), { errors: ["colour"] }],
  ),
});

const document = (check: ResponseCheck) => [open("GET /openapi.json"), { check }] as const;
const operations = [
  ["/plants", "get"],
  ["/plants", "post"],
  ["/plants/{id}", "delete"],
] as const;
const page = {
  headers: { "Content-Type": /^text\/html\b/, "Content-Security-Policy": /default-src/ },
};

export const openapiRows = rowsOf("openapi", {
  "/openapi.json is JSON, without a token": [
    open("GET /openapi.json"),
    {
      headers: { "Content-Type": /^application\/json\b/ },
      check: ({ json }) => (json === undefined ? "it is not JSON" : undefined),
    },
  ],
  "it is OpenAPI 3.1": document(({ json }) =>
    /^3\.1\./.test(json?.openapi) ? undefined : `openapi is ${json?.openapi}`,
  ),
  "it has the version of the package": document(({ json }) =>
    /^\d+\.\d+\.\d+/.test(json?.info?.version)
      ? undefined
      : `info.version is ${json?.info?.version}`,
  ),
  "it describes the three operations": document(({ json }) => {
    const absent = operations.find(([path, method]) => !json?.paths?.[path]?.[method]);
    return absent && `paths has no ${absent[1]} of ${absent[0]}`;
  }),
  "it says that a bearer token is needed": document(({ json }) => {
    const schemes: { type?: string; scheme?: string }[] = Object.values(
      json?.components?.securitySchemes ?? {},
    );
    const isThere = schemes.some(({ type, scheme }) => type === "http" && scheme === "bearer");
    return isThere ? undefined : "securitySchemes has no bearer scheme";
  }),
  "its server is the base path": document(({ json, request }) => {
    const [, basePath = ""] = /^GET (.*)\/openapi\.json /.exec(request) ?? [];
    const servers: { url?: string }[] = json?.servers ?? [{ url: "/" }];
    const paths = servers.map(({ url = "/" }) =>
      new URL(url, "http://service").pathname.replace(/\/$/, ""),
    );
    return paths.includes(basePath) ? undefined : `servers are at ${paths.join(", ")}`;
  }),
  "/docs is a page, without a token": [open("GET /docs"), page],
  "/ is a page, without a token": [open("GET /"), page],
});
