/** What holds for every request: paths, methods, the order of checks, ids of requests, browsers. */
import { describe, expect, test } from "bun:test";
import { checkHeaders, engines, openWorld, runScenarios, type Scenario } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);
  const unknownPaths = [
    "/docs/",
    "/assets",
    "/assets/",
    "/plants/",
    "/plants/1/2",
    "/plants//1",
    "//plants",
    "/Plants",
    "/plants%2F1",
    "/%zz",
    "/v1/plants",
    "/plants;x=1",
  ];
  const plantsMethods = "GET, HEAD, POST, OPTIONS";

  describe("paths and methods", () => {
    runScenarios(world, [
      ...unknownPaths.map(
        (path): Scenario => ({
          name: `finds nothing at ${path}`,
          request: `GET ${path}`,
          token: "none",
          status: 404,
          problem: "not-found",
        }),
      ),
      ...["PUT", "PATCH", "DELETE"].map(
        (method): Scenario => ({
          name: `refuses ${method} on /plants`,
          request: `${method} /plants`,
          token: "none",
          status: 405,
          problem: "method-not-allowed",
          answerHeaders: { Allow: plantsMethods },
        }),
      ),
      ...["GET", "POST", "PUT"].map(
        (method): Scenario => ({
          name: `refuses ${method} on a plant`,
          request: `${method} /plants/7`,
          token: "none",
          status: 405,
          problem: "method-not-allowed",
          answerHeaders: { Allow: "DELETE, OPTIONS" },
        }),
      ),
      ...["/healthz", "/readyz", "/metrics", "/openapi.json"].flatMap((path): Scenario[] => [
        {
          name: `refuses POST on ${path}`,
          request: `POST ${path}`,
          token: "none",
          status: 405,
          problem: "method-not-allowed",
          answerHeaders: { Allow: "GET, HEAD" },
        },
        {
          name: `refuses OPTIONS on ${path}, which needs no permission`,
          request: `OPTIONS ${path}`,
          token: "none",
          status: 405,
          problem: "method-not-allowed",
        },
        {
          name: `answers GET ${path} without a token`,
          request: `GET ${path}`,
          token: "none",
          status: 200,
        },
        { name: `answers HEAD ${path}`, request: `HEAD ${path}`, token: "none", status: 200 },
      ]),
    ]);
  });

  describe("the order of checks", () => {
    const bad = { body: "{", headers: { "Content-Type": "text/plain" } };
    runScenarios(world, [
      { name: "path before method", request: "PUT /nothing", ...bad, token: "none", status: 404 },
      { name: "method before token", request: "PUT /plants", ...bad, token: "none", status: 405 },
      {
        name: "token before scope and body",
        request: "POST /plants?x",
        ...bad,
        token: "none",
        status: 401,
      },
      {
        name: "scope before content type",
        request: "POST /plants?x",
        ...bad,
        token: "read",
        status: 403,
      },
      { name: "content type before body", request: "POST /plants?x", ...bad, status: 415 },
      {
        name: "the token before an id that is none",
        request: "DELETE /plants/x",
        token: "none",
        status: 401,
      },
      {
        name: "the token before a body that is too large",
        request: "POST /plants",
        body: "x".repeat(70_000),
        token: "none",
        status: 401,
        answerHeaders: { Connection: "close" },
      },
    ]);
  });

  describe("faults", () => {
    runScenarios(world, [
      {
        name: "of the query are told also where the body is no text",
        request: "POST /plants?color=red",
        body: new Uint8Array([0xff]),
        status: 400,
        problem: "invalid-request",
        faults: ["color", ""],
      },
    ]);

    test("are told once each, and a hundred at most", async () => {
      const names = Array.from({ length: 150 }, (_, index) => `a${index}&a${index}`).join("&");
      const problem = (await (await world.fetch(`GET /healthz?${names}`)).json()) as {
        detail: string;
        errors: unknown[];
      };
      expect(problem.errors).toHaveLength(100);
      expect(problem.detail).toBe(
        "a0 is not a parameter of this operation. (and 149 more; see errors)",
      );
    });
  });

  describe("a connection", () => {
    const answerHeaders = { Connection: null };
    runScenarios(world, [
      {
        name: "is kept behind a body that was read, whatever was wrong with it",
        request: "POST /plants",
        body: { name: "" },
        status: 400,
        answerHeaders,
      },
      {
        name: "is kept behind a plant that was created",
        request: "POST /plants",
        body: { name: "Fern" },
        status: 201,
        answerHeaders,
        left: [1n],
      },
    ]);
  });

  describe("the host", () => {
    runScenarios(
      world,
      [
        "a b",
        "a,b",
        "plants.test, evil.test",
        "a/b",
        "a@b",
        "user:x@host",
        "[::1",
        "host:port",
      ].map((host) => ({
        name: `refuses the host "${host}"`,
        request: "GET /plants",
        headers: { Host: host },
        status: 400,
        problem: "invalid-request",
        faults: ["Host"],
      })),
    );
    runScenarios(
      world,
      ["localhost", "127.0.0.1:8080", "[::1]:8080", "plants.example", "my_host:1"].map((host) => ({
        name: `takes the host "${host}"`,
        request: "GET /healthz",
        headers: { Host: host },
        token: "none",
        status: 200,
        answer: "ok\n",
      })),
    );
  });

  describe("the id of a request", () => {
    test.each(["a", "A-1._z", "x".repeat(128)])("is the caller's own: %s", async (id) => {
      const response = await world.fetch("GET /nothing", { headers: { "x-request-id": id } });
      expect(response.headers.get("x-request-id")).toBe(id);
      expect(((await response.json()) as { requestId: string }).requestId).toBe(id);
    });

    test.each(["x".repeat(129), "a b", "a,b", "\u00e9", "a/b"])(
      "is a new one instead of %s",
      async (id) => {
        const response = await world.fetch("GET /healthz", { headers: { "x-request-id": id } });
        expect(response.headers.get("x-request-id")).not.toBe(id);
      },
    );

    test("is different for each request that brings none", async () => {
      const take = async () => (await world.fetch("GET /healthz")).headers.get("x-request-id");
      expect(await take()).not.toBe(await take());
    });
  });

  describe("browsers", () => {
    const exposed =
      "Location, Link, X-Request-Id, Idempotency-Replayed, Retry-After, RateLimit, RateLimit-Policy";
    runScenarios(world, [
      {
        name: "may ask what is allowed without a token",
        request: "OPTIONS /plants",
        token: "none",
        headers: { Origin: "https://a.example", "Access-Control-Request-Method": "POST" },
        status: 204,
        answer: "",
        answerHeaders: {
          Allow: plantsMethods,
          "Access-Control-Allow-Origin": "*",
          "Access-Control-Allow-Methods": plantsMethods,
          "Access-Control-Allow-Headers": /Authorization.*Content-Type.*Idempotency-Key/,
          "Access-Control-Max-Age": /^\d+$/,
        },
      },
      {
        name: "may ask about a plant",
        request: "OPTIONS /plants/7",
        token: "none",
        status: 204,
        answerHeaders: { Allow: "DELETE, OPTIONS" },
      },
      {
        name: "may read answers and their headers",
        request: "GET /plants",
        status: 200,
        answerHeaders: {
          "Access-Control-Allow-Origin": "*",
          "Access-Control-Expose-Headers": exposed,
          "Access-Control-Allow-Credentials": null,
        },
      },
      {
        name: "may read refusals",
        request: "GET /plants",
        token: "none",
        status: 401,
        answerHeaders: { "Access-Control-Allow-Origin": "*" },
      },
    ]);

    describe("with a list of origins", () => {
      const strict = openWorld(engine, { corsOrigins: ["https://a.example", "https://b.example"] });

      test("lets these read and no others, and says that it depends", async () => {
        const ask = async (headers: HeadersInit) =>
          (await strict.fetch("OPTIONS /plants", { headers })).headers;
        const good = await ask({ origin: "https://b.example" });
        checkHeaders(good, { "Access-Control-Allow-Origin": "https://b.example", Vary: "Origin" });
        const bad = await ask({ origin: "https://evil.example" });
        checkHeaders(bad, { "Access-Control-Allow-Origin": null, Vary: "Origin" });
        checkHeaders(await ask({}), { "Access-Control-Allow-Origin": null, Vary: "Origin" });
      });
    });
  });

  describe("a base path", () => {
    const based = openWorld(engine, { basePath: "/v1" });

    test("stands before every path, the location and the link", async () => {
      const token = await based.makeToken({ user: "alice" });
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      const make = (name: string) =>
        based.fetch("POST /v1/plants", { headers, body: JSON.stringify({ name }) });
      expect((await make("a")).headers.get("location")).toBe("/v1/plants/1");
      await make("b");
      const list = await based.fetch("GET /v1/plants?limit=1", { headers });
      expect(list.headers.get("link")).toBe('</v1/plants?limit=1&after=1>; rel="next"');
      expect((await based.fetch("DELETE /v1/plants/1", { headers })).status).toBe(204);
      for (const path of ["/plants", "/healthz", "/v1", "/v1plants", "/v2/plants"]) {
        expect((await based.fetch(`GET ${path}`, { headers })).status).toBe(404);
      }
      const document = await based.fetch("GET /v1/openapi.json");
      expect(await document.json()).toMatchObject({ servers: [{ url: "/v1" }] });
    });
  });
});
