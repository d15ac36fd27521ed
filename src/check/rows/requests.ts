/** Requests: what a body, a query and a host must be, the id of a request, the order of checks. */
import { create, each, open, plant, rowsOf } from "../row.ts";

const json = "application/json";
const wrongInEveryWay = { body: "{", headers: { "Content-Type": "text/plain" } };
const requestId = { "X-Request-Id": "{each}" };

export const requestRows = rowsOf("requests", {
  "a body without Content-Type is 415": create(plant(1), 415, { "Content-Type": [] }),
  "a body of another type than application/json is 415": each(
    [
      ...["text/plain", "application/problem+json", "application/json-patch+json", "json"],
      ...["application/x-www-form-urlencoded", `${json}, ${json}`, `text/plain; ${json}`],
    ],
    create(plant(1), 415, { "Content-Type": "{each}" }),
  ),
  "a body in another charset than UTF-8 is 415": create(plant(1), 415, {
    "Content-Type": `${json}; charset=latin1`,
  }),
  "a body that is encoded is 415": create(plant(1), 415, { "Content-Encoding": "gzip" }),
  "charset=utf-8 may follow the type, in any case": each(
    [`${json}; charset=utf-8`, `${json};charset=UTF-8`, `Application/JSON ; charset="utf-8"`],
    create(plant(1), 201, { "Content-Type": "{each}" }),
  ),
  "a body that is not JSON is 400": each(
    [
      ...["{", "", '{"name":"{name}","id":{1}}{}', '{"name":"{name}","id":{1}} x'],
      ...['{"name":"{name}","id":{1},}', "{'name':'Fern'}", '\ufeff{"name":"{name}","id":{1}}'],
      "[".repeat(60_000),
    ],
    create("{each}", { errors: [""] }),
  ),
  "a body that is not valid UTF-8 is 400": each(
    ["\xc3\x28", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf0\x9f\x8c"],
    [
      { request: "POST /plants", bytes: '{"name":"{name} {each}","id":{1}}' },
      { status: 400, errors: [""] },
    ],
  ),
  "a body that is JSON but not an object is 400": each(
    ["[]", "null", "7", '"Fern"', '[{"name":"{name}","id":{1}}]'],
    create("{each}", { errors: [""] }),
  ),
  "a create without a body is 400": ["POST /plants", { status: 400, errors: [""] }],
  "an unknown field is 400 and named": each(
    ["colour", "Name", "__proto__"],
    create('{"name":"{name}","id":{1},"{each}":"green"}', { errors: ["/{each}"] }),
  ),
  "an unknown field may be nested as deep as it likes": create(
    `{"name":"{name}","id":{1},"deep":${"[".repeat(20_000)}${"]".repeat(20_000)}}`,
    { errors: ["/deep"] },
  ),
  "a repeated field is 400 and named": each(
    ["name", "\\u006eame"],
    create('{"name":"first","id":{1},"{each}":"{name}"}', { errors: ["/name"] }),
  ),
  "an unknown query parameter is 400 and named": each(
    ["colour", "offset", "Limit", "?limit", "access_token", "constructor", "__proto__", ""],
    ["GET /plants?limit=1&{each}=3", { errors: ["{each}"] }],
    [{ request: "POST /plants?{each}=3", body: plant(1) }, { errors: ["{each}"] }],
    ["DELETE /plants/{1}?{each}=3", { errors: ["{each}"] }],
  ),
  "a repeated query parameter is 400 and named": each(
    ["limit=1&limit=1", "limit=1&limit=2"],
    ["GET /plants?{each}", { errors: ["limit"] }],
  ),
  "a body where none is taken is 400": [
    [{ request: "GET /plants?limit=1", body: "{}" }, { errors: [""] }],
    [{ request: "DELETE /plants/{1}", body: "{}" }, { errors: [""] }],
  ],
  "a body may come in chunks": [
    { request: "POST /plants", chunks: ['{"name":', '"{name}","id":{1}}', ""] },
    201,
  ],
  "a Content-Length that is none, or two of them, is 400": [
    create(plant(1), { status: [400] }, { "Content-Length": "ten" }),
    create(plant(1), { status: [400] }, { "Content-Length": "-1" }),
    create(plant(1), { status: [400] }, { "Content-Length": ["2", "40"] }),
  ],
  "a request without Host, or with two, is 400": [
    [{ request: "GET /plants?limit=1", headers: { Host: [] } }, { status: [400] }],
    [
      { request: "GET /plants?limit=1", headers: { Host: ["{host}", "{host}"] } },
      { status: [400] },
    ],
  ],
  "a malformed Host is 400": each(
    ["a/b?c", "a b", "a,b", "user@host", "host:port", "[::1"],
    [{ request: "GET /plants?limit=1", headers: { Host: "{each}" } }, { status: [400] }],
  ),
  "the path is checked before the method": [open("PUT /nothing-here", wrongInEveryWay), 404],
  "the method is checked before the token": [open("PUT /plants", wrongInEveryWay), 405],
  "the token is checked before type, query and body": [
    [open("POST /plants?colour=green", wrongInEveryWay), 401],
    [open("GET /plants?limit=x"), 401],
    [open("DELETE /plants/x"), 401],
  ],
  "the scope is checked before type, query and body": [
    [{ request: "POST /plants?colour=green", token: "read", ...wrongInEveryWay }, 403],
    [{ request: "DELETE /plants/x", token: "read" }, 403],
  ],
  "the type is checked before query and body": [
    { request: "POST /plants?colour=green", ...wrongInEveryWay },
    415,
  ],
  "the caller's X-Request-Id comes back": each(
    ["a", "-", "A-1._z", "x".repeat(128)],
    [{ request: "GET /healthz", headers: requestId }, { headers: requestId }],
    [{ request: "GET /plants?limit=1", headers: requestId }, { headers: requestId }],
    [
      { request: "GET /plants?limit=x", headers: requestId },
      { status: 400, headers: requestId },
    ],
  ),
  "a malformed X-Request-Id is replaced": each(
    ["x".repeat(129), "a b", "a/b", "a,b", 'a"b', "\u00e9"],
    [
      open("GET /healthz", { headers: requestId }),
      { headers: { "X-Request-Id": /^[A-Za-z0-9._-]{1,128}$/ } },
    ],
  ),
  "a new X-Request-Id is different each time": [
    open("GET /healthz", { atOnce: 3 }),
    {
      check: (_, all) => {
        const ids = all.map((response) => response.header("X-Request-Id"));
        return new Set(ids).size === ids.length ? undefined : `the ids are ${ids.join(", ")}`;
      },
    },
  ],
});
