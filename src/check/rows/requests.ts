/** Paths and methods; what a body, a query and a host must be, and the order of checks. */
import { anonymous, as, create, each, plant, rowsOf, type Step } from "../row.ts";
import type { SentHeaders } from "../service.ts";

export const publicPaths = ["/openapi.json", "/docs", "/", "/healthz", "/readyz"];
const allows = (status: number, methods: readonly string[]) => ({
  status,
  headers: { Allow: new Set(methods) },
});
export const notAllowed = allows(405, ["GET", "HEAD"]);

/** Not DELETE of /plants: a service that accepts it might delete all plants. */
const paths: readonly (readonly [path: string, allowed: string[], others: string[]])[] = [
  ["/plants", ["GET", "HEAD", "POST", "OPTIONS"], ["PUT", "PATCH"]],
  ["/plants/{1}", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"], ["POST", "PATCH"]],
  ["/plants/bulk", ["POST", "OPTIONS"], ["GET", "PUT", "DELETE"]],
  ["/me", ["GET", "HEAD", "OPTIONS"], ["POST", "PUT", "DELETE"]],
];

const surfaceRows = rowsOf("surface", {
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
    [
      "/nothing-here",
      "/plants/",
      "/plants/1/2",
      "/Plants",
      "/plants%2F1",
      "/plants/bulk/1",
      "/docs/",
      "/assets/x",
    ],
    ["GET {each}", 404],
  ),
  "another method is 405, with Allow": paths.flatMap(([path, allowed, others]) =>
    others.map((method): Step => [anonymous(`${method} ${path}`), allows(405, allowed)]),
  ),
  "another method on a public path is 405, with Allow": each(
    publicPaths,
    [anonymous("POST {each}"), notAllowed],
    [anonymous("OPTIONS {each}"), notAllowed],
  ),
  "OPTIONS needs no token, and lists the methods in Allow": paths.map(
    ([path, allowed]): Step => [anonymous(`OPTIONS ${path}`), allows(204, allowed)],
  ),
});

const json = "application/json";
const wrongInEveryWay = { body: "{", headers: { "Content-Type": "text/plain" } };
const requestId = { "X-Request-Id": "{each}" };
const listWith = (headers: SentHeaders) => ({ request: "GET /plants?limit=1", headers });

const requestRows = rowsOf("requests", {
  "a body that is not declared as application/json in UTF-8 is 415": each(
    [
      "text/plain",
      "application/problem+json",
      "application/json-patch+json",
      "json",
      "application/x-www-form-urlencoded",
      `${json}, ${json}`,
      `${json}; charset=latin1`,
    ],
    create(plant(1), 415, { "Content-Type": "{each}" }),
  ),
  "a body without Content-Type, or with Content-Encoding, is 415": [
    create(plant(1), 415, { "Content-Type": [] }),
    create(plant(1), 415, { "Content-Encoding": "gzip" }),
  ],
  "JSON Lines are 415, and the detail names /plants/bulk": each(
    ["application/jsonl", "application/x-ndjson"],
    create(plant(1), { status: 415, detail: "/plants/bulk" }, { "Content-Type": "{each}" }),
  ),
  "charset=utf-8 may follow the type, in any case": each(
    [`${json}; charset=utf-8`, `${json};charset=UTF-8`, `Application/JSON ; charset="utf-8"`],
    create(plant(1), 201, { "Content-Type": "{each}" }),
  ),
  "a body that is not one JSON object is 400": each(
    [
      "{",
      "",
      '{"name":"{name}","id":{1}}{}',
      '{"name":"{name}","id":{1},}',
      "{'name':'Fern'}",
      '\ufeff{"name":"{name}","id":{1}}',
      "[".repeat(60_000),
      "[]",
      "null",
      "7",
      '"Fern"',
      '[{"name":"{name}","id":{1}}]',
    ],
    create("{each}", { errors: [""] }),
  ),
  "a body that is not valid UTF-8 is 400": each(
    ["\xc3\x28", "\xff", "\xc0\x80", "\xed\xa0\x80"],
    [{ request: "POST /plants", bytes: '{"name":"{name} {each}","id":{1}}' }, { errors: [""] }],
  ),
  "a create without a body is 400": ["POST /plants", { errors: [""] }],
  "a body where none is taken is 400": each(
    ["GET /plants?limit=1", "DELETE /plants/{1}", "GET /plants/{1}", "GET /me"],
    [{ request: "{each}", body: "{}" }, { errors: [""] }],
  ),
  "a body may come in chunks": [
    { request: "POST /plants", chunks: ['{"name":', '"{name}","id":{1}}', ""] },
    201,
  ],
  "an unknown field is 400 and named": each(
    ["color", "Name", "__proto__"],
    create('{"name":"{name}","id":{1},"{each}":"green"}', { errors: ["/{each}"] }),
  ),
  "a repeated field is 400 and named": each(
    ["name", "\\u006eame"],
    create('{"name":"first","id":{1},"{each}":"{name}"}', { errors: ["/name"] }),
  ),
  "an unknown query parameter is 400 and named": each(
    ["color", "offset", "Limit", "__proto__", ""],
    ["GET /plants?limit=1&{each}=3", { errors: ["{each}"] }],
    [{ request: "POST /plants?{each}=3", body: plant(1) }, { errors: ["{each}"] }],
    ["DELETE /plants/{1}?{each}=3", { errors: ["{each}"] }],
    ["GET /plants/{1}?{each}=3", { errors: ["{each}"] }],
    ["GET /me?{each}=3", { errors: ["{each}"] }],
  ),
  "a repeated query parameter is 400 and named": each(
    ["limit=1&limit=1", "limit=1&limit=2"],
    ["GET /plants?{each}", { errors: ["limit"] }],
  ),
  "two lengths, two hosts or none are 400": [
    create(plant(1), { status: [400] }, { "Content-Length": ["2", "40"] }),
    [listWith({ Host: ["{host}", "{host}"] }), { status: [400] }],
    [listWith({ Host: [] }), { status: [400] }],
  ],
  "a malformed Host is 400": each(
    ["a/b?c", "a b", "a,b", "user@host", "host:port", "[::1"],
    [listWith({ Host: "{each}" }), { status: [400] }],
  ),
  "path, method, token, type and body are checked in this order": [
    [anonymous("PUT /nothing-here", wrongInEveryWay), 404],
    [anonymous("PUT /plants", wrongInEveryWay), 405],
    [anonymous("POST /plants?color=green", wrongInEveryWay), 401],
    [anonymous("GET /plants?limit=x"), 401],
    [anonymous("DELETE /plants/x"), 401],
    [{ request: "POST /plants?color=green", ...wrongInEveryWay }, 415],
  ],
  "the scope is checked before type, query and body": [
    [as("read", "POST /plants?color=green", wrongInEveryWay), 403],
    [as("read", "DELETE /plants/x"), 403],
  ],
  "the caller's X-Request-Id comes back": each(
    ["a", "-", "A-1._z", "x".repeat(128)],
    [listWith(requestId), { headers: requestId }],
    [anonymous("GET /plants", { headers: requestId }), { status: 401, headers: requestId }],
  ),
  "a malformed X-Request-Id is replaced": each(
    ["x".repeat(129), "a b", "a/b", "a,b", 'a"b', "\u00e9"],
    [listWith(requestId), { headers: { "X-Request-Id": /^[A-Za-z0-9._-]{1,128}$/ } }],
  ),
  "a new X-Request-Id is different each time": [
    anonymous("GET /healthz", { atOnce: 3 }),
    {
      check: (_, all) => {
        const ids = new Set(all.map((response) => response.header("X-Request-Id")));
        return ids.size === all.length ? undefined : "an id came twice";
      },
    },
  ],
});

export const rows = [...surfaceRows, ...requestRows];
