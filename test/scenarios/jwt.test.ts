/** JWTs through the whole service: who gets in beside opaque tokens, and what a refusal shows. */
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
import { openWorld } from "./scenario.ts";

const issuer = startIssuer();
let key: SigningKey;
beforeAll(async () => {
  key = await issuer.makeKey();
});
afterAll(() => issuer.stop());

const good = (others: Record<string, unknown> = {}) => issuer.claims(Date.now(), others);

describe("with an issuer", () => {
  const world = openWorld("SQLite", { jwt: issuer.trust });

  async function call(token: string, request: string, body?: object): Promise<Response> {
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "x-request-id": "same",
    };
    return world.fetch(request, body ? { headers, body: JSON.stringify(body) } : { headers });
  }

  test("a JWT and an opaque token to the same garden see the same plants, and others do not", async () => {
    const alice = await sign(key, good());
    const bob = await sign(key, good({ sub: "bob" }));
    const opaque = await world.makeToken({ user: "carol", garden: "alice" });
    expect((await call(alice, "POST /plants", { name: "Fern", id: 1 })).status).toBe(201);
    for (const token of [alice, opaque]) {
      expect(await (await call(token, "GET /plants")).json()).toEqual([{ name: "Fern", tag: "" }]);
    }
    expect(await (await call(bob, "GET /plants")).json()).toEqual([]);
    expect((await call(bob, "DELETE /plants/1")).status).toBe(404);
  });

  test("a JWT that may read may not write", async () => {
    const reader = await sign(key, good({ scope: "openid read" }));
    expect((await call(reader, "GET /plants")).status).toBe(200);
    const response = await call(reader, "POST /plants", { name: "Fern" });
    expect(response.status).toBe(403);
    expect(response.headers.get("www-authenticate")).toContain("insufficient_scope");
  });

  test("shows one refusal for every kind of bad token", async () => {
    const [header, payload] = (await sign(key, good())).split(".");
    const [, , signature] = (await sign(key, good({ sub: "eve" }))).split(".");
    const bad = [
      makeToken(),
      "garbage",
      "a.b.c",
      `${encodePart({ alg: "none" })}.${encodePart(good())}.`,
      `${header}.${payload}.${signature}`,
      await sign(await makeSigningKey(), good()),
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
    const answers = await Promise.all(
      bad.map(async (token) => {
        const response = await call(token, "GET /plants");
        return JSON.stringify([response.status, [...response.headers], await response.text()]);
      }),
    );
    expect(new Set(answers).size).toBe(1);
    expect(answers[0]).toContain("401");
    expect(answers[0]).toContain("invalid_token");
  });
});

describe("with an issuer that cannot be reached", () => {
  const world = openWorld("SQLite", { jwt: { ...issuer.trust, keysUrl: "http://127.0.0.1:1/" } });

  test("a JWT is answered with 503 and Retry-After, and opaque tokens go on", async () => {
    const call = (token: string) =>
      world.fetch("GET /plants", { headers: { authorization: `Bearer ${token}` } });
    const response = await call(await sign(key, good()));
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(await response.text()).not.toContain("127.0.0.1");
    expect((await call(await world.makeToken({ user: "alice" }))).status).toBe(200);
  });
});

describe("without an issuer", () => {
  const world = openWorld("SQLite");

  test("no JWT opens anything, and nobody is asked", async () => {
    const headers = { authorization: `Bearer ${await sign(key, good())}` };
    const before = issuer.asked;
    expect((await world.fetch("GET /plants", { headers })).status).toBe(401);
    expect(issuer.asked).toBe(before);
  });
});
