/** Tokens: who gets in, what a refusal shows, what a read-only token may do; who a token is. */
import { expect, test } from "bun:test";
import { bearer, onEachEngine } from "./garden.ts";

const realm = 'Bearer realm="plants"';
const reads = ["GET /plants", "HEAD /plants", "GET /plants/1", "HEAD /plants/1", "GET /tags"];
const others = ["GET /events", "GET /me", "HEAD /me"];
const writes: readonly (readonly [request: string, body?: object])[] = [
  ["POST /plants", { name: "Fern", id: 1 }],
  ["POST /plants/bulk", [{ name: "Fern", id: 1 }]],
  ["POST /plants/bulk-update", { ids: [7], set: { tag: "x" } }],
  ["PUT /plants/1", { name: "Fern" }],
  ["PATCH /plants/7", { tag: "x" }],
  ["DELETE /plants/7"],
  ["POST /plants/bulk-delete", { ids: [7] }],
];
const operations = [...reads, ...others, ...writes.map(([request]) => request)];
const unknown = `plant_${"0".repeat(49)}`;

onEachEngine(({ call, reader, stranger, anonymous, token, plant, list, service }) => {
  /** The challenge of a 401, and the body without its request id. */
  async function refuse(request: string, headers: Record<string, string> = {}) {
    const reply = await anonymous(request, 401, undefined, { "X-Request-Id": "same", ...headers });
    return [reply.headers.get("WWW-Authenticate"), reply.text] as const;
  }

  test.each(operations)("%s without a token, or with an unknown one, is 401", async (request) => {
    expect((await refuse(request))[0]).toBe(realm);
    const [challenge] = await refuse(request, bearer(unknown));
    expect(challenge).toBe(`${realm}, error="invalid_token"`);
  });

  test("the scheme is taken in any case, another is 401, and nothing but the header is read", async () => {
    const good = await token();
    for (const scheme of ["Bearer", "bearer", "BEARER  "]) {
      await call("GET /plants", 200, undefined, { Authorization: `${scheme} ${good}` });
    }
    const expected = await refuse("GET /plants");
    for (const scheme of ["Basic _", "Token _", "_", "Bearer", "Bearer_", "x Bearer _"]) {
      const Authorization = scheme.replace("_", good);
      expect(await refuse("GET /plants", { Authorization })).toEqual(expected);
    }
    await anonymous(`GET /plants?access_token=${good}`, 401);
    await anonymous("POST /plants", 401, { name: "Fern", access_token: good });
  });

  test("tokens of a garden share their first four characters, and of other gardens they don't", async () => {
    const start = (token: string) => /^plant_(\w{4})\w{45}$/.exec(token)?.[1];
    const grants = [
      { user: "ann", garden: "greenhouse" },
      { user: "ben", garden: "greenhouse", scope: "read" as const },
      { user: "greenhouse" },
      { user: "ann" },
      { user: "ben" },
    ];
    const tokens = await Promise.all(grants.map((grant) => service.makeToken(grant)));
    const [shared, second, third, ann, ben] = tokens.map(start);
    expect([second, third]).toEqual([shared, shared]);
    // Whichever process makes them: commands make tokens, and so did older versions.
    expect(shared).toBe("79MS");
    expect(new Set([shared, ann, ben, undefined]).size).toBe(4);
    expect(new Set(tokens.map((each) => each.slice(10, 49))).size).toBe(5);
  });

  test("a malformed, expired or revoked token is 401, with the body of an unknown one", async () => {
    const good = await token();
    await call("GET /plants", 200);
    const wrong = good.slice(0, -1) + (good.endsWith("0") ? "1" : "0");
    const expired = await service.makeToken({ user: "ann", expiresAtMs: Date.now() });
    const revoked = await service.makeToken({ user: "ann" });
    await service.revoke(revoked);
    const malformed = ["plant_short", "a.b.c", `${unknown} x`, "x".repeat(8_000), `${good}x`];
    const expected = await refuse("GET /plants", bearer(unknown));
    for (const bad of [...malformed, wrong, expired, revoked, `${good}, Bearer ${good}`]) {
      expect(await refuse("GET /plants", bearer(bad))).toEqual(expected);
    }
  });

  test("a read-only token may read everything, and is 403 on every write, which changes nothing", async () => {
    await plant([{ id: 7n, name: "Ivy" }]);
    for (const request of reads) await reader(request, request.includes("/1") ? 404 : 200);
    for (const request of others) await reader(request, 200);
    for (const [request, body] of writes) {
      const refused = await reader(request, 403, body);
      const challenge = `${realm}, error="insufficient_scope", scope="write"`;
      expect(refused.headers.get("WWW-Authenticate")).toBe(challenge);
    }
    expect(await list()).toEqual(["Ivy"]);
  });

  test("nothing is stored whose body arrives after its token was revoked", async () => {
    const good = await token();
    const begin = () => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const chunked = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
      const headers = { ...bearer(good), ...chunked };
      const responding = service.fetch("POST /plants", { headers, body: readable });
      return async () => {
        await new Blob(['{"name":"Fern"}']).stream().pipeTo(writable);
        return (await responding).status;
      };
    };
    // The token is looked up now, so that the next requests are admitted at once.
    expect(await begin()()).toBe(201);
    const [sendForgotten, sendLate] = [begin(), begin()];
    await service.makeToken({ user: "another" });
    await service.parts.authenticator.refresh();
    expect(await sendForgotten()).toBe(201);
    await service.revoke(good);
    expect(await sendLate()).toBe(401);
    expect((await reader("GET /plants", 200)).json).toHaveLength(2);
  });

  test("/me shows user, garden, scope and expiry of the token, number of plants and last event", async () => {
    const { json } = await call("GET /me", 200);
    const me = { user: "ann", garden: json.garden, scope: "write", plants: 0, lastEvent: 0 };
    expect(json).toEqual(me);
    await call("POST /plants/bulk", 200, [{ name: "Fern" }, { name: "Ivy" }]);
    await call("DELETE /plants/1", 204);
    const later = { ...me, scope: "read", plants: 1, lastEvent: 3 };
    expect((await reader("GET /me", 200)).json).toEqual(later);
    const expiresAtMs = Date.now() + 60_000;
    const bob = bearer(await service.makeToken({ user: "bob", expiresAtMs }));
    const expiresAt = new Date(expiresAtMs).toISOString();
    const expected = { ...me, user: "bob", garden: "bob", expiresAt };
    expect((await call("GET /me", 200, undefined, bob)).json).toEqual(expected);
  });

  test("every operation keeps to the garden of its token", async () => {
    await plant([{ id: 1n, name: "Fern", tag: "shade" }]);
    for (const path of ["/plants", "/plants?tag=shade", "/plants?q=fern", "/tags", "/events"]) {
      expect((await stranger(`GET ${path}`, 200)).json).toEqual([]);
    }
    for (const request of ["GET /plants/1", "DELETE /plants/1"]) await stranger(request, 404);
    const ids = { ids: [1] };
    for (const { json } of [
      await stranger("POST /plants/bulk-delete", 200, ids),
      await stranger("POST /plants/bulk-update", 200, { ...ids, set: { tag: "x" } }),
    ]) {
      expect(json.missing).toEqual([1]);
    }
    await stranger("PUT /plants/1", 201, { name: "Other" });
    await stranger("POST /plants/bulk", 200, [{ name: "Another", id: 2 }]);
    expect((await call("GET /plants", 200)).json).toEqual([{ name: "Fern", tag: "shade" }]);
  });
});
