/** Requests: paths and methods, what a body, a query and a header must be, the order of checks. */
import { expect, test } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { onEachEngine } from "./garden.ts";

const allowed: Readonly<Record<string, readonly [allowed: string, others: readonly string[]]>> = {
  "/plants": ["GET, HEAD, POST, OPTIONS", ["PUT", "PATCH", "DELETE"]],
  "/plants/1": ["GET, HEAD, PUT, PATCH, DELETE, OPTIONS", ["POST"]],
  "/plants/bulk": ["POST, OPTIONS", ["GET", "PUT", "DELETE"]],
  "/plants/bulk-delete": ["POST, OPTIONS", ["GET", "DELETE"]],
  "/tags": ["GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  "/events": ["GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  "/me": ["GET, HEAD, OPTIONS", ["POST", "PUT", "DELETE"]],
};
const publicPaths = ["/openapi.json", "/docs", "/", "/healthz", "/readyz", "/metrics"];
const methods = (text: string | null) => text?.split(", ").toSorted();
const sendable =
  "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, " +
  "X-Request-Id, traceparent, tracestate";
const json = "application/json";
const fern = { name: "Fern", id: 1 };

onEachEngine(({ call, reader, anonymous, refuse, fetch, list, grow }) => {
  test.each(Object.entries(allowed))(
    "%s lists its methods in Allow: for a preflight, and where another method is used",
    async (path, [allow, others]) => {
      const { headers } = await anonymous(`OPTIONS ${path}`, 204);
      expect(methods(headers.get("Allow"))).toEqual(methods(allow));
      expect(methods(headers.get("Access-Control-Allow-Methods"))).toEqual(methods(allow));
      expect(headers.get("Access-Control-Allow-Headers")).toBe(sendable);
      expect(headers.get("Access-Control-Max-Age")).toBe("86400");
      for (const method of others) {
        const refused = await anonymous(`${method} ${path}`, 405);
        expect(methods(refused.headers.get("Allow"))).toEqual(methods(allow));
      }
    },
  );

  test.each(publicPaths)("%s has GET and HEAD only, no token and no parameters", async (path) => {
    await anonymous(`GET ${path}`, 200);
    for (const method of ["POST", "OPTIONS"]) {
      expect((await anonymous(`${method} ${path}`, 405)).header("Allow")).toBe("GET, HEAD");
    }
    expect((await anonymous(`GET ${path}?color=green`, 400)).errors).toEqual(["color"]);
  });

  test.each([
    ...["/nothing-here", "/plants/", "/plants/1/2", "/Plants", "/plants%2F1", "/plants/bulk/1"],
    ...["/docs/", "/assets/x", "/tags/1", "/me/"],
  ])("%s is 404, with a token and without", async (path) => {
    await call(`GET ${path}`, 404);
    await anonymous(`GET ${path}`, 404);
  });

  test("path, method, token, scope, type, size, query and body are checked in this order", async () => {
    const wrong = ["{", { "Content-Type": "text/plain" }] as const;
    await anonymous("PUT /nothing-here", 404, ...wrong);
    await anonymous("PUT /plants", 405, ...wrong);
    await anonymous("POST /plants?color=green", 401, ...wrong);
    await anonymous("GET /plants?limit=x", 401);
    await anonymous("DELETE /plants/x", 401);
    await reader("POST /plants?color=green", 403, ...wrong);
    await reader("DELETE /plants/x", 403);
    await call("POST /plants?color=green", 415, ...wrong);
    await call("POST /plants?color=green", 413, { name: "x".repeat(70_000) });
    await refuse("POST /plants?color=green", ["color", ""], "{");
  });

  test("every error of query, headers and body is listed, not only the first", async () => {
    const body = '{"name":"","tag":5,"id":1.5,"color":1}';
    const places = ["limit", "Idempotency-Key", "/name", "/tag", "/id", "/color"];
    await refuse("POST /plants?limit=1", places, body, { "Idempotency-Key": "a b" });
    const query = "limit=x&after=y&include=z&order=up&q=&tag=%00&color=green";
    const names = ["limit", "after", "include", "order", "q", "tag", "color"];
    await refuse(`GET /plants?${query}`, names);
  });

  test("each error is listed once, and 100 at most", async () => {
    const repeated = Array.from({ length: 150 }, (_, index) => `a${index}&a${index}`).join("&");
    const { json, errors } = await call(`GET /plants?${repeated}`, 400);
    expect([json.errors.length, errors.length]).toEqual([100, 100]);
  });

  test("detail shows a name that reverses text or moves the cursor in its escaped form", async () => {
    const reply = await call("POST /plants", 400, { name: "Fern", "\u202eevil\u009b": 1 });
    expect(reply.errors).toEqual(["/\u202eevil\u009b"]);
    expect(reply.json.detail).not.toMatch(/\p{Cc}|\p{Cf}/u);
  });

  test.each([
    ...["text/plain", "application/problem+json", "application/json-patch+json", "json", ""],
    ...["application/x-www-form-urlencoded", `${json}, ${json}`, `${json}; charset=latin1`, null],
  ])("a body whose Content-Type is %p is 415", async (type) => {
    await call("POST /plants", 415, fern, { "Content-Type": type });
    await call("PUT /plants/1", 415, fern, { "Content-Type": type });
    expect(await list()).toEqual([]);
  });

  test("a body with a Content-Encoding is 415", async () => {
    await call("POST /plants", 415, fern, { "Content-Encoding": "gzip" });
  });

  test.each(["; charset=utf-8", ";charset=UTF-8", ' ; charset="utf-8"'])(
    "%s may follow the Content-Type",
    async (parameter) => {
      await call("POST /plants", 201, fern, { "Content-Type": `Application/JSON${parameter}` });
    },
  );

  test("a body that is not one JSON object in UTF-8 is 400, and stores nothing", async () => {
    const broken = ["{", "", '{"name":"Fern"}{}', '{"name":"Fern",}', "{'name':'Fern'}", undefined];
    const others = ["null", "7", '"Fern"', "[]", '[{"name":"Fern"}]', '\ufeff{"name":"Fern"}'];
    for (const body of [...broken, ...others, "[".repeat(60_000)]) {
      await refuse("POST /plants", [""], body);
    }
    for (const bytes of ["\xc3\x28", "\xff", "\xc0\x80", "\xed\xa0\x80"]) {
      await refuse("POST /plants", [""], Buffer.from(`{"name":"Fern ${bytes}"}`, "latin1"));
    }
    expect(await list()).toEqual([]);
  });

  test.each(["GET /plants?limit=1", "DELETE /plants/1", "GET /plants/1", "GET /me", "GET /tags"])(
    "a body where none is taken is 400: %s",
    async (request) => {
      await grow("Fern");
      const response = await fetch(request, undefined, { "Content-Length": "2" });
      expect([response.status, (await response.json()).errors[0].pointer]).toEqual([400, ""]);
      expect(await list()).toEqual(["Fern"]);
    },
  );

  test.each([
    ["color", "/color"],
    ["Name", "/Name"],
    ["__proto__", "/__proto__"],
    ["a/b~c", "/a~1b~0c"],
    ["name", "/name"],
    ["\\u006eame", "/name"],
  ])("an unknown or repeated field is 400 and named: %s", async (field, pointer) => {
    await refuse("POST /plants", [pointer], `{"name":"Fern","${field}":"green"}`);
  });

  test.each(["color", "offset", "Limit", "__proto__", ""])(
    "an unknown query parameter is 400 and named: %p",
    async (name) => {
      for (const request of ["GET /plants", "DELETE /plants/1", "GET /plants/1", "GET /me"]) {
        await refuse(`${request}?${name}=3`, [name]);
      }
      await refuse(`POST /plants?${name}=3`, [name], fern);
      await refuse(`PUT /plants/1?${name}=3`, [name], fern);
    },
  );

  test("a malformed Host is 400", async () => {
    for (const Host of ["a/b?c", "a b", "a,b", "user@host", "host:port", "[::1", "a, a", ""]) {
      await refuse("GET /plants", ["Host"], undefined, { Host });
    }
  });

  test("the caller's X-Request-Id comes back, unless it is malformed or holds a token", async () => {
    const idFor = async (id: string) => {
      const headers = { "X-Request-Id": id };
      const refused = await anonymous("GET /plants", 401, undefined, headers);
      const taken = await call("GET /plants", 200, undefined, headers);
      return [refused.header("X-Request-Id") === id, taken.header("X-Request-Id") === id];
    };
    for (const id of ["a", "-", "A-1._z", "x".repeat(128)]) {
      expect([id, ...(await idFor(id))]).toEqual([id, true, true]);
    }
    const tokens = [makeToken(), `Bearer-${makeToken()}`, makeToken().slice(0, 26)];
    for (const id of ["x".repeat(129), "a b", "a/b", "a,b", 'a"b', "\u00e9", "", ...tokens]) {
      expect([id, ...(await idFor(id))]).toEqual([id, false, false]);
    }
    const replies = await Promise.all([1, 2, 3].map(() => anonymous("GET /healthz", 200)));
    expect(new Set(replies.map((reply) => reply.header("X-Request-Id"))).size).toBe(3);
  });

  test.each([
    ["POST /plants", 201, 64 * 1024, '{"name":"Fern"}'],
    ["PUT /plants/1", 201, 64 * 1024, '{"name":"Fern"}'],
    ["POST /plants/bulk", 200, 1024 * 1024, '[{"name":"Fern"}]'],
    ["POST /plants/bulk-delete", 200, 256 * 1024, '{"ids":[7]}'],
  ])("%s is %d with %d bytes, and 413 with one more", async (request, status, bytesMax, body) => {
    await call(request, 413, body.padEnd(bytesMax + 1));
    await call(request, status, body.padEnd(bytesMax));
  });
});
