/** What all requests share: paths and methods, the order of checks, headers and sizes. */
import { describe, expect, test } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { onEachEngine } from "./garden.ts";

const paths = [
  {
    path: "/plants",
    allowed: ["GET", "HEAD", "POST", "OPTIONS"],
    refused: ["PUT", "PATCH", "DELETE"],
  },
  {
    path: "/plants/1",
    allowed: ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"],
    refused: ["POST"],
  },
  { path: "/plants/bulk", allowed: ["POST", "OPTIONS"], refused: ["GET", "PUT", "DELETE"] },
  { path: "/plants/bulk-update", allowed: ["POST", "OPTIONS"], refused: ["GET", "PATCH"] },
  { path: "/plants/bulk-delete", allowed: ["POST", "OPTIONS"], refused: ["GET", "DELETE"] },
  { path: "/tags", allowed: ["GET", "HEAD", "OPTIONS"], refused: ["POST", "DELETE"] },
  { path: "/events", allowed: ["GET", "HEAD", "OPTIONS"], refused: ["POST", "DELETE"] },
  { path: "/me", allowed: ["GET", "HEAD", "OPTIONS"], refused: ["POST", "PUT", "DELETE"] },
];

/** The methods of a header such as `GET, HEAD`, sorted. */
const methodsIn = (header: string | null) => header?.split(", ").toSorted();

onEachEngine(({ call, reader, anonymous, grow, list }) => {
  describe.each(paths)("the path $path", ({ path, allowed, refused }) => {
    test("lists its methods in the response to OPTIONS", async () => {
      const { headers } = await anonymous(`OPTIONS ${path}`, 204);
      expect(methodsIn(headers.get("Allow"))).toEqual(allowed.toSorted());
    });

    test("tells browsers which methods and headers pages may send, for a day", async () => {
      const { headers } = await anonymous(`OPTIONS ${path}`, 204);

      expect(methodsIn(headers.get("Access-Control-Allow-Methods"))).toEqual(allowed.toSorted());
      expect(headers.get("Access-Control-Allow-Headers")).toBe(
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, " +
          "X-Request-Id, traceparent, tracestate",
      );
      expect(headers.get("Access-Control-Max-Age")).toBe("86400");
    });

    test("refuses any other method with a 405 that lists its own", async () => {
      for (const method of refused) {
        const { headers } = await anonymous(`${method} ${path}`, 405);
        expect(methodsIn(headers.get("Allow"))).toEqual(allowed.toSorted());
      }
    });

    test("forbids caches to store a response without a valid token", async () => {
      const method = path.includes("bulk") ? "POST" : "GET";

      const preflight = await anonymous(`OPTIONS ${path}`, 204);
      const wrongMethod = await anonymous(`TRACE ${path}`, 405);
      const withoutToken = await anonymous(`${method} ${path}`, 401);

      expect(preflight.headers.get("Cache-Control")).toBe("no-store");
      expect(wrongMethod.headers.get("Cache-Control")).toBe("no-store");
      expect(withoutToken.headers.get("Cache-Control")).toBe("no-store");
    });
  });

  describe.each(["/docs", "/", "/healthz", "/readyz", "/metrics"])("the open path %s", (path) => {
    test("needs no token", async () => {
      await anonymous(`GET ${path}`, 200);
    });

    test("has GET and HEAD only", async () => {
      const post = await anonymous(`POST ${path}`, 405);
      const options = await anonymous(`OPTIONS ${path}`, 405);

      expect(post.headers.get("Allow")).toBe("GET, HEAD");
      expect(options.headers.get("Allow")).toBe("GET, HEAD");
    });

    test("has no parameters", async () => {
      const { errors } = await anonymous(`GET ${path}?color=green`, 400);
      expect(errors).toEqual(["color"]);
    });
  });

  describe("the open path /openapi.json", () => {
    test("needs no token", async () => {
      await anonymous("GET /openapi.json", 200);
    });

    test("has GET, HEAD and OPTIONS only", async () => {
      const { headers } = await anonymous("POST /openapi.json", 405);
      expect(headers.get("Allow")).toBe("GET, HEAD, OPTIONS");
    });

    test("has no parameters", async () => {
      const { errors } = await anonymous("GET /openapi.json?color=green", 400);
      expect(errors).toEqual(["color"]);
    });
  });

  describe("caches are forbidden to store", () => {
    describe.each(["/nothing", "/plants/1/2"])("the 404 of %s", (path) => {
      test.each(["GET", "HEAD", "POST", "OPTIONS"])("for %s", async (method) => {
        const { headers } = await anonymous(`${method} ${path}`, 404);
        expect(headers.get("Cache-Control")).toBe("no-store");
      });
    });

    test("the 404 of a file that the pages don't have", async () => {
      const get = await anonymous("GET /assets/nothing.js", 404);
      const head = await anonymous("HEAD /assets/nothing.js", 404);

      expect(get.headers.get("Cache-Control")).toBe("no-store");
      expect(head.headers.get("Cache-Control")).toBe("no-store");
    });

    // A proxy that compressed a response with an ETag would weaken the ETag.
    test("a 304, and proxies to transform it", async () => {
      await grow("Fern");
      const { headers } = await call("GET /plants/1", 304, undefined, { "If-None-Match": "*" });
      expect(headers.get("Cache-Control")).toBe("no-store, no-transform");
    });

    test("a 400, a 403 and a 415", async () => {
      const badHost = await call("GET /plants", 400, undefined, { Host: "a, b" });
      const readOnly = await reader("DELETE /plants/1", 403);
      const badType = await call("POST /plants", 415, "{}", { "Content-Type": "text/plain" });

      expect(badHost.headers.get("Cache-Control")).toBe("no-store");
      expect(readOnly.headers.get("Cache-Control")).toBe("no-store");
      expect(badType.headers.get("Cache-Control")).toBe("no-store");
    });
  });

  test.each(["POST", "OPTIONS"])("an asset that doesn't exist has no %s", async (method) => {
    await anonymous(`${method} /assets/nothing.js`, 405);
  });

  describe("a request that several checks would refuse fails", () => {
    const wrongType = { "Content-Type": "text/plain" };
    const wrongTypeAndExpectation = { "Content-Type": "text/plain", Expect: "100-Continue" };

    test("for its path, before all that follows", async () => {
      await anonymous("PUT /nothing-here", 404, "{", wrongTypeAndExpectation);
    });

    test("for its method before its token", async () => {
      await anonymous("PUT /plants", 405, "{", wrongTypeAndExpectation);
    });

    test("for its token before its expectation, type, parameters and body", async () => {
      await anonymous("POST /plants?color=green", 401, "{", wrongTypeAndExpectation);
    });

    test("for its token before its id", async () => {
      await anonymous("DELETE /plants/x", 401);
    });

    test("for its scope before its expectation, type, parameters and body", async () => {
      await reader("POST /plants?color=green", 403, "{", wrongTypeAndExpectation);
    });

    test("for its scope before its id", async () => {
      await reader("DELETE /plants/x", 403);
    });

    test("for its expectation before its type, parameters and body", async () => {
      await call("POST /plants?color=green", 417, "{", wrongTypeAndExpectation);
    });

    test("for its type before its parameters and body", async () => {
      const { headers } = await call("POST /plants?color=green", 415, "{", wrongType);
      expect(headers.get("Accept")).toBe("application/json");
    });

    test("for its type before its size", async () => {
      await call("POST /plants", 415, { name: "x".repeat(70_000) }, wrongType);
    });

    test("for its size before its parameters", async () => {
      await call("POST /plants?color=green", 413, { name: "x".repeat(70_000) });
    });

    test("for its parameters and body together", async () => {
      const { errors } = await call("POST /plants?color=green", 400, "{");
      expect(errors).toEqual(["", "color"]);
    });
  });

  describe("the errors of a 400", () => {
    test("cover the query, the headers and the body", async () => {
      const body = { name: "", tag: 5, id: 1.5, color: 1 };
      const headers = { "Idempotency-Key": "a b" };
      const { errors } = await call("POST /plants?limit=1", 400, body, headers);
      expect(errors).toEqual(["/color", "/id", "/name", "/tag", "Idempotency-Key", "limit"]);
    });

    test("cover every parameter", async () => {
      const query = "after=y&color=green&include=z&limit=x&order=up&q=&tag=%00";
      const { errors } = await call(`GET /plants?${query}`, 400);
      expect(errors).toEqual(["after", "color", "include", "limit", "order", "q", "tag"]);
    });

    test("are 100 at most, each in another place", async () => {
      const query = Array.from({ length: 150 }, (_, index) => `a${index}&a${index}`).join("&");
      const invalidPlants = Array(150).fill({});

      const refused = await call(`POST /plants/bulk?${query}`, 400, invalidPlants);

      expect(refused.json.errors).toHaveLength(100);
      expect(refused.errors).toHaveLength(100);
    });
  });

  test("the detail of a 400 escapes names that reverse text or move the cursor", async () => {
    const { json } = await call("POST /plants", 400, { name: "Fern", "\u202eevil\u009b": 1 });
    expect(json.detail).not.toMatch(/\p{Cc}|\p{Cf}/u);
  });

  test.each(["GET /plants?limit=9", "GET /tags"])(
    "%s refuses a body even when its list is cached",
    async (request) => {
      // On SQLite, the service caches a list that is requested again.
      await call(request, 200);
      await call(request, 200);
      await call(request, 200);

      await call(request, 400, undefined, { "Content-Length": "2" });
    },
  );

  describe("the Content-Encoding", () => {
    test("may be identity", async () => {
      await call("POST /plants", 201, { name: "Ivy" }, { "Content-Encoding": "identity" });
      expect(await list()).toEqual(["Ivy"]);
    });

    test.each(["gzip", "br", "identity, gzip"])("can't be '%s'", async (encoding) => {
      const headers = { "Content-Encoding": encoding };
      const { json } = await call("POST /plants", 415, { name: "Ivy" }, headers);

      expect(json.detail).toContain("Content-Encoding");
      expect(await list()).toEqual([]);
    });
  });

  describe("the expectation", () => {
    test("may be 100-continue", async () => {
      await call("POST /plants", 201, { name: "Ivy" }, { Expect: "100-continue" });
      expect(await list()).toEqual(["Ivy"]);
    });

    describe.each(["100-Continue", "200-ok", "100-continue, 200-ok", ""])("'%s'", (expectation) => {
      test("is a 417 that says what to send instead", async () => {
        const { json } = await call("POST /plants", 417, { name: "Ivy" }, { Expect: expectation });

        expect(json.detail).toContain("Expect: 100-continue");
        expect(await list()).toEqual([]);
      });

      test("is a 417 without a body, too", async () => {
        await call("GET /plants", 417, undefined, { Expect: expectation });
      });

      test("is a 417 on an open path, too", async () => {
        await anonymous("GET /healthz", 417, undefined, { Expect: expectation });
      });
    });
  });

  describe("the Content-Type", () => {
    test.each([
      "Application/JSON; charset=utf-8",
      'Application/JSON;charset="UTF-8"',
      "Application/JSON;",
    ])("may be written as %s", async (type) => {
      await call("POST /plants", 201, { name: "Ivy" }, { "Content-Type": type });
    });

    // Each such header once took over a second, and these would exceed the test's timeout.
    test("can have 15,000 spaces without taking the service's time", async () => {
      for (let sent = 0; sent < 200; sent++) {
        await call("POST /plants", 415, undefined, { "Content-Type": `a${" ".repeat(15_000)}b` });
      }
    });
  });

  describe("the X-Request-Id", () => {
    const token = makeToken("greenhouse");
    const secret = token.slice("plant_".length);
    const mistypedSecret = secret.slice(0, -1) + (secret.endsWith("0") ? "1" : "0");

    test.each([
      { what: "of one character", id: "a" },
      { what: "of all kinds of characters", id: "A-1._z" },
      { what: "of 128 characters", id: "x".repeat(128) },
      { what: "of 64 digits", id: "0".repeat(64) },
      { what: "that differs from a token in one character", id: mistypedSecret },
    ])("$what comes back", async ({ id }) => {
      const refused = await anonymous("GET /plants", 401, undefined, { "X-Request-Id": id });
      const accepted = await call("GET /plants", 200, undefined, { "X-Request-Id": id });

      expect(refused.headers.get("X-Request-Id")).toBe(id);
      expect(accepted.headers.get("X-Request-Id")).toBe(id);
    });

    test.each([
      { what: "is empty", id: "" },
      { what: "has 129 characters", id: "x".repeat(129) },
      { what: "has a space", id: "a b" },
      { what: "has a slash", id: "a/b" },
      { what: "isn't ASCII", id: "\u00e9" },
      { what: "is a token", id: token },
      { what: "contains a token", id: `Bearer-${token}` },
      { what: "is the beginning of a token", id: token.slice(0, 26) },
      { what: "is a token without its plant_", id: secret },
      { what: "ends with a token without its plant_", id: `id-${secret}` },
      { what: "contains a token without its plant_", id: `x${secret}y` },
    ])("is replaced by a new one if it $what", async ({ id }) => {
      const refused = await anonymous("GET /plants", 401, undefined, { "X-Request-Id": id });
      const accepted = await call("GET /plants", 200, undefined, { "X-Request-Id": id });

      const ids = [id, refused.headers.get("X-Request-Id"), accepted.headers.get("X-Request-Id")];
      expect(new Set(ids).size).toBe(3);
    });

    test("is another one for each request that has none", async () => {
      const ids = new Set<string | null>();
      for (let sent = 0; sent < 22; sent++) {
        const { headers } = await call("GET /plants", 200);
        ids.add(headers.get("X-Request-Id"));
      }
      expect(ids.size).toBe(22);
    });
  });

  describe.each([
    { request: "POST /plants", status: 201, kib: 64, json: '{"name":"Fern"}' },
    { request: "PUT /plants/1", status: 201, kib: 64, json: '{"name":"Fern"}' },
    { request: "PATCH /plants/1", status: 404, kib: 64, json: '{"name":"Fern"}' },
    { request: "POST /plants/bulk", status: 200, kib: 1_024, json: '[{"name":"Fern"}]' },
    { request: "POST /plants/bulk-delete", status: 200, kib: 256, json: '{"ids":[7]}' },
    {
      request: "POST /plants/bulk-update",
      status: 200,
      kib: 256,
      json: '{"ids":[7],"set":{"tag":"x"}}',
    },
  ])("the body of $request", ({ request, status, kib, json }) => {
    test(`can have ${kib} KiB`, async () => {
      await call(request, status, json.padEnd(kib * 1_024));
    });

    test(`is a 413 with ${kib} KiB and a byte`, async () => {
      await call(request, 413, json.padEnd(kib * 1_024 + 1));
      expect(await list()).toEqual([]);
    });
  });
});
