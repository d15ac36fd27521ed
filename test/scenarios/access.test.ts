/** Access through the whole service: gardens that are shared, tokens that are revoked, JWTs. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import {
  audience,
  encodePart,
  makeSigningKey,
  type SigningKey,
  sign,
  startIssuer,
} from "../openid-issuer.ts";
import { engines, openWorld } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);

  test("nothing is stored whose body arrives after its token was revoked", async () => {
    const token = await world.makeToken({ user: "slow" });
    const id = (await world.storage.listTokens()).at(-1)?.id ?? "";
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const create = () => {
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const responding = world.fetch("POST /plants", { headers, body: readable });
      return async () => {
        await new Blob(['{"name":"Fern"}']).stream().pipeTo(writable);
        return (await responding).status;
      };
    };
    // The token is looked up now, so that the next requests are admitted at once.
    expect(await create()()).toBe(201);
    const [sendUnchanged, sendForgotten, sendLate] = [create(), create(), create()];
    expect(await sendUnchanged()).toBe(201);
    await world.makeToken({ user: "another" });
    await world.assembly.authenticator.refresh();
    expect(await sendForgotten()).toBe(201);
    await world.storage.revokeToken(id, Date.now());
    await world.assembly.authenticator.refresh();
    expect(await sendLate()).toBe(401);
    expect(await world.storage.list("slow", undefined, 10)).toHaveLength(3);
  });
});

const issuer = startIssuer();
let key: SigningKey;
beforeAll(async () => {
  key = await issuer.makeKey();
});
afterAll(() => issuer.stop());

const good = (others: Record<string, unknown> = {}) => issuer.claims(Date.now(), others);

describe("with an issuer", () => {
  const world = openWorld("SQLite", { jwt: issuer.trust });

  test("JWTs and tokens to the same garden see the same plants, and others do not", async () => {
    const alice = await sign(key, good());
    const bob = await sign(key, good({ sub: "bob" }));
    const opaque = await world.makeToken({ user: "carol", garden: "alice" });
    expect((await world.call(alice, "POST /plants", { name: "Fern", id: 1 })).status).toBe(201);
    for (const token of [alice, opaque]) {
      const listed = await world.call(token, "GET /plants");
      expect(await listed.json()).toEqual([{ name: "Fern", tag: "" }]);
    }
    expect(await (await world.call(bob, "GET /plants")).json()).toEqual([]);
    expect((await world.call(bob, "DELETE /plants/1")).status).toBe(404);
    expect((await world.call(opaque, "DELETE /plants/1")).status).toBe(204);
  });

  test("a JWT that may read may not write", async () => {
    const reader = await sign(key, good({ scope: "openid read" }));
    expect((await world.call(reader, "GET /plants")).status).toBe(200);
    const response = await world.call(reader, "POST /plants", { name: "Fern" });
    expect(response.status).toBe(403);
    expect(response.headers.get("www-authenticate")).toContain("insufficient_scope");
  });

  test("every kind of bad token gets the same response", async () => {
    const [header, payload] = (await sign(key, good())).split(".");
    const [, , signature] = (await sign(key, good({ sub: "eve" }))).split(".");
    const bad = [
      makeToken(),
      "garbage",
      "a.b.c",
      `${encodePart({ alg: "none" })}.${encodePart(good())}.`,
      `${header}.${payload}.${signature}`,
      await sign({ ...(await makeSigningKey()), kid: key.kid }, good()),
      await sign(key, good(), { typ: "logout+jwt" }),
      await sign(key, good({ exp: 1 })),
      await sign(key, good({ nbf: 99_999_999_999 })),
      await sign(key, good({ iss: "https://evil.test" })),
      await sign(key, good({ aud: `${audience}/other` })),
      await sign(key, good({ sub: undefined })),
      await sign(key, good({ sub: "a\u202eb" })),
      await sign(key, good({ scope: "none" })),
      await sign(key, good({ padding: "x".repeat(9_000) })),
    ];
    const responses = await Promise.all(
      bad.map(async (token) => {
        const headers = { "x-request-id": "same" };
        const response = await world.call(token, "GET /plants", undefined, headers);
        return JSON.stringify([response.status, [...response.headers], await response.text()]);
      }),
    );
    expect(new Set(responses).size).toBe(1);
    expect(responses[0]).toContain("401");
    expect(responses[0]).toContain("invalid_token");
  });
});

describe("without an issuer", () => {
  const world = openWorld("SQLite");

  test("no JWT opens anything, and no issuer is asked", async () => {
    const before = issuer.asked;
    expect((await world.call(await sign(key, good()), "GET /plants")).status).toBe(401);
    expect(issuer.asked).toBe(before);
  });
});
