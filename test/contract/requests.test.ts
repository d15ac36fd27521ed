/** Requests: paths and methods, what a body, a query and a header must be, the order of checks. */
import { expect, test } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { onEachEngine } from "./garden.ts";

const allowed: Readonly<Record<string, readonly [allowed: string, others: readonly string[]]>> = {
  "/plants": ["GET, HEAD, POST, OPTIONS", ["PUT", "PATCH", "DELETE"]],
  "/plants/1": ["GET, HEAD, PUT, DELETE, OPTIONS", ["POST", "PATCH"]],
  "/plants/bulk": ["POST, OPTIONS", ["GET", "PUT", "DELETE"]],
  "/plants/bulk-delete": ["POST, OPTIONS", ["GET", "DELETE"]],
  "/tags": ["GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  "/events": ["GET, HEAD, OPTIONS", ["POST", "DELETE"]],
  "/me": ["GET, HEAD, OPTIONS", ["POST", "PUT", "DELETE"]],
};
const publicPaths = ["/openapi.json", "/docs", "/", "/healthz", "/readyz", "/metrics"];
const methods = (text = "") => text.split(", ").toSorted();
const json = "application/json";
const fern = { name: "Fern", id: 1 };
const wrongInEveryWay = ["{", { "Content-Type": "text/plain" }] as const;

onEachEngine(({ call, reader, anonymous, fetch, list, grow }) => {
  test.each(Object.entries(allowed))(
    "%s lists its methods in Allow: for OPTIONS, which needs no token, and where one is missing",
    async (path, [allow, others]) => {
      const options = await anonymous(`OPTIONS ${path}`, 204);
      expect(methods(options.header("Allow"))).toEqual(methods(allow));
      for (const method of others) {
        const refused = await anonymous(`${method} ${path}`, 405);
        expect(methods(refused.header("Allow"))).toEqual(methods(allow));
      }
    },
  );

  test.each(publicPaths)(
    "%s has GET and HEAD only, without a token or parameters",
    async (path) => {
      const { headers } = await anonymous(`GET ${path}`, 200);
      const head = await anonymous(`HEAD ${path}`, 200);
      expect(head.header("Content-Type")).toBe(headers.get("Content-Type") ?? "");
      for (const method of ["POST", "OPTIONS"]) {
        expect((await anonymous(`${method} ${path}`, 405)).header("Allow")).toBe("GET, HEAD");
      }
      expect((await anonymous(`GET ${path}?color=green`, 400)).errors).toEqual(["color"]);
    },
  );

  test.each([
    ...["/nothing-here", "/plants/", "/plants/1/2", "/Plants", "/plants%2F1", "/plants/bulk/1"],
    ...["/docs/", "/assets/x", "/tags/1", "/me/"],
  ])("%s is 404, with a token and without", async (path) => {
    await call(`GET ${path}`, 404);
    await anonymous(`GET ${path}`, 404);
  });

  test("path, method, token, scope, type, query and body are checked in this order", async () => {
    await anonymous("PUT /nothing-here", 404, ...wrongInEveryWay);
    await anonymous("PUT /plants", 405, ...wrongInEveryWay);
    await anonymous("POST /plants?color=green", 401, ...wrongInEveryWay);
    await anonymous("GET /plants?limit=x", 401);
    await anonymous("DELETE /plants/x", 401);
    await reader("POST /plants?color=green", 403, ...wrongInEveryWay);
    await reader("DELETE /plants/x", 403);
    await call("POST /plants?color=green", 415, ...wrongInEveryWay);
    await call("POST /plants?color=green", 413, { name: "x".repeat(70_000) });
    expect((await call("POST /plants?color=green", 400, "{")).errors).toEqual(["color", ""]);
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

  test.each(["application/jsonl", "application/x-ndjson", "Application/JSONL; charset=utf-8"])(
    "%s is 415, and the detail says what to send",
    async (type) => {
      for (const path of ["/plants", "/plants/bulk"]) {
        const { json } = await call(`POST ${path}`, 415, fern, { "Content-Type": type });
        expect(json.detail).toMatch(/one JSON array.*\/plants\/bulk/);
      }
    },
  );

  test.each([
    `${json}; charset=utf-8`,
    `${json};charset=UTF-8`,
    `Application/JSON ; charset="utf-8"`,
  ])("a body whose Content-Type is %s is taken", async (type) => {
    await call("POST /plants", 201, fern, { "Content-Type": type });
  });

  test.each([
    ...["{", "", '{"name":"Fern"}{}', '{"name":"Fern",}', "{'name':'Fern'}", "null", "7", '"Fern"'],
    ...["[]", '[{"name":"Fern"}]', '\ufeff{"name":"Fern"}', "[".repeat(60_000)],
  ])("a body that is not one JSON object is 400: %#", async (body) => {
    expect((await call("POST /plants", 400, body)).errors).toEqual([""]);
    expect(await list()).toEqual([]);
  });

  test.each(["\xc3\x28", "\xff", "\xc0\x80", "\xed\xa0\x80"])(
    "a body that is not valid UTF-8 is 400: %#",
    async (bytes) => {
      const body = Buffer.from(`{"name":"Fern ${bytes}"}`, "latin1");
      expect((await call("POST /plants", 400, body)).errors).toEqual([""]);
      expect(await list()).toEqual([]);
    },
  );

  test("a create without a body is 400", async () => {
    expect((await call("POST /plants", 400)).errors).toEqual([""]);
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
  ])("an unknown field is 400 and named: %s", async (field, pointer) => {
    const { errors } = await call("POST /plants", 400, `{"name":"Fern","${field}":"green"}`);
    expect(errors).toEqual([pointer]);
  });

  test.each(["name", "\\u006eame"])("a repeated field is 400 and named: %s", async (field) => {
    const { errors } = await call("POST /plants", 400, `{"name":"first","${field}":"second"}`);
    expect(errors).toEqual(["/name"]);
  });

  test.each(["color", "offset", "Limit", "__proto__", ""])(
    "an unknown query parameter is 400 and named: %p",
    async (name) => {
      for (const request of ["GET /plants", "DELETE /plants/1", "GET /plants/1", "GET /me"]) {
        expect((await call(`${request}?${name}=3`, 400)).errors).toEqual([name]);
      }
      for (const request of ["POST /plants", "PUT /plants/1"]) {
        expect((await call(`${request}?${name}=3`, 400, fern)).errors).toEqual([name]);
      }
    },
  );

  test.each(["limit=1&limit=1", "limit=1&limit=2"])(
    "a parameter twice is 400: %s",
    async (query) => {
      expect((await call(`GET /plants?${query}`, 400)).errors).toEqual(["limit"]);
    },
  );

  test.each(["a/b?c", "a b", "a,b", "user@host", "host:port", "[::1", "a, a", ""])(
    "a Host of %p is 400",
    async (Host) => {
      expect((await call("GET /plants", 400, undefined, { Host })).errors).toEqual(["Host"]);
    },
  );

  test.each(["a", "-", "A-1._z", "x".repeat(128)])(
    "the caller's X-Request-Id comes back: %s",
    async (id) => {
      const headers = { "X-Request-Id": id };
      expect((await call("GET /plants", 200, undefined, headers)).header("X-Request-Id")).toBe(id);
      const refused = await anonymous("GET /plants", 401, undefined, headers);
      expect([refused.header("X-Request-Id"), refused.json.requestId]).toEqual([id, id]);
    },
  );

  test.each([
    ...["x".repeat(129), "a b", "a/b", "a,b", 'a"b', "\u00e9", ""],
    // The log would show a token.
    ...[makeToken(), `Bearer-${makeToken()}`, makeToken().slice(0, 26)],
  ])("another X-Request-Id is replaced: %#", async (id) => {
    const { headers } = await call("GET /plants", 200, undefined, { "X-Request-Id": id });
    expect(headers.get("X-Request-Id")).not.toBe(id);
  });

  test("a new X-Request-Id is different each time", async () => {
    const replies = await Promise.all([1, 2, 3].map(() => anonymous("GET /healthz", 200)));
    expect(new Set(replies.map((reply) => reply.header("X-Request-Id"))).size).toBe(3);
  });

  test.each([
    ["POST /plants", 64 * 1024, '{"name":"Fern"}'],
    ["PUT /plants/1", 64 * 1024, '{"name":"Fern"}'],
    ["POST /plants/bulk", 1024 * 1024, '[{"name":"Fern"}]'],
    ["POST /plants/bulk-delete", 256 * 1024, '{"ids":[7]}'],
  ])("%s takes %d bytes, and one more is 413", async (request, bytesMax, body) => {
    await call(request, 413, body.padEnd(bytesMax + 1));
    const { status } = await (request === "POST /plants/bulk" || request.includes("delete")
      ? call(request, 200, body.padEnd(bytesMax))
      : call(request, 201, body.padEnd(bytesMax)));
    expect(status).toBeLessThan(300);
  });

  test("every error of query, headers and body is listed, not only the first", async () => {
    const body = '{"name":"","tag":5,"id":1.5,"color":1}';
    const headers = { "Idempotency-Key": "a b" };
    const { errors } = await call("POST /plants?limit=1", 400, body, headers);
    const expected = ["limit", "Idempotency-Key", "/name", "/tag", "/id", "/color"];
    expect(errors.toSorted()).toEqual(expected.toSorted());
    const query = "limit=x&after=y&include=z&order=up&q=&tag=%00&color=green";
    const wrong = (await call(`GET /plants?${query}`, 400)).errors;
    expect(wrong.toSorted()).toEqual(
      ["limit", "after", "include", "order", "q", "tag", "color"].toSorted(),
    );
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
});
