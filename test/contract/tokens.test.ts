/** Tokens: which open the service, what a refusal shows, and what a read-only token allows. */
import { describe, expect, test } from "bun:test";
import { bearer, onEachEngine } from "./garden.ts";

const reads = [
  "GET /plants",
  "HEAD /plants",
  "GET /plants/7",
  "HEAD /plants/7",
  "GET /tags",
  "GET /events",
  "GET /me",
  "HEAD /me",
];
const writes: readonly { request: string; body?: object }[] = [
  { request: "POST /plants", body: { name: "Fern", id: 1 } },
  { request: "POST /plants/bulk", body: [{ name: "Fern", id: 1 }] },
  { request: "POST /plants/bulk-update", body: { ids: [7], set: { tag: "x" } } },
  { request: "PUT /plants/1", body: { name: "Fern" } },
  { request: "PATCH /plants/7", body: { tag: "x" } },
  { request: "DELETE /plants/7" },
  { request: "POST /plants/bulk-delete", body: { ids: [7] } },
];
const operations = [...reads, ...writes.map(({ request }) => request)];

/** Well-formed, but no token of the service. */
const unknownToken = `plant_${"0".repeat(49)}`;

onEachEngine((garden) => {
  const { call, reader, stranger, anonymous, startRequest, token, plant, list, service } = garden;

  describe.each(operations)("%s", (request) => {
    test("without a token is a 401 that asks for one", async () => {
      const { headers } = await anonymous(request, 401);
      expect(headers.get("WWW-Authenticate")).toBe('Bearer realm="plants"');
    });

    test("with an unknown token is a 401 that says so", async () => {
      const { headers } = await anonymous(request, 401, undefined, bearer(unknownToken));
      const challenge = 'Bearer realm="plants", error="invalid_token"';
      expect(headers.get("WWW-Authenticate")).toBe(challenge);
    });
  });

  test.each(["Bearer ", "bearer ", "BEARER   "])(
    "a token is accepted after '%s'",
    async (scheme) => {
      const headers = { Authorization: `${scheme}${await token()}` };
      await call("GET /plants", 200, undefined, headers);
    },
  );

  test.each([
    { what: "Basic", authorization: (good: string) => `Basic ${good}` },
    { what: "Token", authorization: (good: string) => `Token ${good}` },
    { what: "no scheme", authorization: (good: string) => good },
    { what: "a scheme and no token", authorization: () => "Bearer" },
    { what: "no space after the scheme", authorization: (good: string) => `Bearer${good}` },
    { what: "a word before the scheme", authorization: (good: string) => `x Bearer ${good}` },
  ])("an Authorization with $what is the same 401 as without a token", async (wrong) => {
    const Authorization = wrong.authorization(await token());
    const requestId = { "X-Request-Id": "same" };

    const without = await anonymous("GET /plants", 401, undefined, requestId);
    const refused = await anonymous("GET /plants", 401, undefined, { ...requestId, Authorization });

    expect(refused.headers.get("WWW-Authenticate")).toBe('Bearer realm="plants"');
    expect(refused.text).toBe(without.text);
  });

  test("a token in the query or the body isn't read", async () => {
    const good = await token();
    await anonymous(`GET /plants?access_token=${good}`, 401);
    await anonymous("POST /plants", 401, { name: "Fern", access_token: good });
  });

  test.each([
    { what: "is too short", malformed: () => "plant_short" },
    { what: "looks like a JWT", malformed: () => "a.b.c" },
    { what: "has a word after it", malformed: () => `${unknownToken} x` },
    { what: "has 8,000 characters", malformed: () => "x".repeat(8_000) },
    { what: "has a character too many", malformed: (good: string) => `${good}x` },
    {
      what: "has a wrong last character",
      malformed: (good: string) => good.slice(0, -1) + (good.endsWith("0") ? "1" : "0"),
    },
    { what: "is sent twice", malformed: (good: string) => `${good}, Bearer ${good}` },
  ])("a token that $what is the same 401 as an unknown one", async ({ malformed }) => {
    const good = await token();
    await call("GET /plants", 200);
    const requestId = { "X-Request-Id": "same" };

    const unknown = { ...requestId, ...bearer(unknownToken) };
    const expected = await anonymous("GET /plants", 401, undefined, unknown);
    const wrong = { ...requestId, ...bearer(malformed(good)) };
    const refused = await anonymous("GET /plants", 401, undefined, wrong);

    const challenge = 'Bearer realm="plants", error="invalid_token"';
    expect(refused.headers.get("WWW-Authenticate")).toBe(challenge);
    expect(refused.text).toBe(expected.text);
  });

  test("an expired or revoked token is the same 401 as an unknown one", async () => {
    const expired = await service.makeToken({ user: "ann", expiresAtMs: Date.now() });
    const revoked = await service.makeToken({ user: "ann" });
    await service.revoke(revoked);
    const requestId = { "X-Request-Id": "same" };

    const unknown = { ...requestId, ...bearer(unknownToken) };
    const expected = await anonymous("GET /plants", 401, undefined, unknown);

    const challenge = 'Bearer realm="plants", error="invalid_token"';
    for (const ended of [expired, revoked]) {
      const headers = { ...requestId, ...bearer(ended) };
      const refused = await anonymous("GET /plants", 401, undefined, headers);
      expect(refused.headers.get("WWW-Authenticate")).toBe(challenge);
      expect(refused.text).toBe(expected.text);
    }
  });

  describe("the first four characters of a token", () => {
    /** Without its `plant_`. */
    const beginningOf = (made: string) => /^plant_(\w{4})\w{45}$/.exec(made)?.[1];

    test("are the same for all tokens of a garden, made by any version", async () => {
      const first = await service.makeToken({ user: "ann", garden: "greenhouse" });
      const second = await service.makeToken({ user: "ben", garden: "greenhouse", scope: "read" });
      const third = await service.makeToken({ user: "greenhouse" });

      expect(beginningOf(first)).toBe("79MS");
      expect(beginningOf(second)).toBe("79MS");
      expect(beginningOf(third)).toBe("79MS");
    });

    test("are others for another garden", async () => {
      const ofGreenhouse = await service.makeToken({ user: "greenhouse" });
      const ofAnn = await service.makeToken({ user: "ann" });
      const ofBen = await service.makeToken({ user: "ben" });

      const beginnings = [ofGreenhouse, ofAnn, ofBen].map(beginningOf);
      expect(beginnings).not.toContain(undefined);
      expect(new Set(beginnings).size).toBe(3);
    });

    test("are all that tokens of a garden share", async () => {
      const tokens = [
        await service.makeToken({ user: "ann", garden: "greenhouse" }),
        await service.makeToken({ user: "ben", garden: "greenhouse", scope: "read" }),
        await service.makeToken({ user: "greenhouse" }),
        await service.makeToken({ user: "ann" }),
        await service.makeToken({ user: "ben" }),
      ];

      const secrets = tokens.map((made) => made.slice("plant_1234".length, 49));
      expect(new Set(secrets).size).toBe(5);
    });
  });

  describe("a read-only token", () => {
    test.each(reads)("allows %s", async (request) => {
      await plant([{ id: 7n, name: "Ivy" }]);
      await reader(request, 200);
    });

    test.each(["GET", "HEAD"])("learns that there is no plant from %s", async (method) => {
      await reader(`${method} /plants/1`, 404);
    });

    test.each(writes)("gets a 403 for $request, which changes nothing", async (write) => {
      await plant([{ id: 7n, name: "Ivy" }]);

      const refused = await reader(write.request, 403, write.body);

      expect(refused.headers.get("WWW-Authenticate")).toBe(
        'Bearer realm="plants", error="insufficient_scope", scope="write"',
      );
      expect(await list()).toEqual(["Ivy"]);
      expect((await call("GET /me", 200)).json).toMatchObject({ plants: 1, lastEvent: 1 });
    });
  });

  test("a plant isn't stored if its token was revoked before its body arrived", async () => {
    // The service looks up the token now, so it admits the next requests at once.
    await call("POST /plants", 201, { name: "Fern" });
    const chunked = { "Transfer-Encoding": "chunked" };
    const early = await startRequest("POST /plants", chunked);
    const late = await startRequest("POST /plants", chunked);
    // A new token makes the service forget the tokens that it knows.
    await service.makeToken({ user: "another" });
    await service.parts.authenticator.refresh();

    await early.write('{"name":"Ivy"}');
    expect((await early.end()).status).toBe(201);

    await service.revoke(await token());
    await late.write('{"name":"Moss"}');
    expect((await late.end()).status).toBe(401);

    const { json } = await reader("GET /plants", 200);
    expect(json).toEqual([
      { name: "Fern", tag: "" },
      { name: "Ivy", tag: "" },
    ]);
  });

  describe("/me", () => {
    test("shows whose token it is, and what its garden has", async () => {
      const { json } = await call("GET /me", 200);

      expect(json).toEqual({
        user: "ann",
        garden: garden.name,
        scope: "write",
        plants: 0,
        lastEvent: 0,
      });
    });

    test("shows the scope of a read-only token", async () => {
      const { json } = await reader("GET /me", 200);

      expect(json).toEqual({
        user: "ann",
        garden: garden.name,
        scope: "read",
        plants: 0,
        lastEvent: 0,
      });
    });

    test("counts the plants of a bulk, and no deleted ones", async () => {
      await call("POST /plants/bulk", 200, [{ name: "Fern" }, { name: "Ivy" }]);
      await call("DELETE /plants/1", 204);

      const { json } = await call("GET /me", 200);

      expect(json.plants).toBe(1);
      expect(json.lastEvent).toBe(3);
    });

    test("shows when the token expires", async () => {
      const expiresAtMs = Date.now() + 60_000;
      const bobs = await service.makeToken({ user: "bob", expiresAtMs });

      const { json } = await call("GET /me", 200, undefined, bearer(bobs));

      expect(json).toEqual({
        user: "bob",
        garden: "bob",
        scope: "write",
        plants: 0,
        lastEvent: 0,
        expiresAt: new Date(expiresAtMs).toISOString(),
      });
    });
  });

  describe("a token to another garden", () => {
    test.each(["/plants", "/plants?tag=shade", "/plants?q=fern", "/tags", "/events"])(
      "finds nothing at %s",
      async (path) => {
        await plant([{ id: 1n, name: "Fern", tag: "shade" }]);
        const { json } = await stranger(`GET ${path}`, 200);
        expect(json).toEqual([]);
      },
    );

    test.each(["GET", "DELETE"])("gets a 404 for %s of a plant", async (method) => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);
      await stranger(`${method} /plants/1`, 404);
      expect(await list()).toEqual(["Fern"]);
    });

    test("misses the plant in a bulk delete", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);
      const { json } = await stranger("POST /plants/bulk-delete", 200, { ids: [1] });

      expect(json.missing).toEqual([1]);
      expect(await list()).toEqual(["Fern"]);
    });

    test("misses the plant in a bulk update", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);
      const body = { ids: [1], set: { tag: "x" } };
      const { json } = await stranger("POST /plants/bulk-update", 200, body);

      expect(json.missing).toEqual([1]);
      expect(await list("tag=shade")).toEqual(["Fern"]);
    });

    test("creates plants with the same ids there, and not here", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      await stranger("PUT /plants/1", 201, { name: "Other" });
      await stranger("POST /plants/bulk", 200, [{ name: "Another", id: 2 }]);

      const { json } = await call("GET /plants", 200);
      expect(json).toEqual([{ name: "Fern", tag: "shade" }]);
    });
  });
});
