/** The issuer's keys over time: rotation, withdrawal, floods, an issuer that fails or lies. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { openJwtFixture } from "../../test/jwt-fixture.ts";
import { makeSigningKey, type SigningKey, sign } from "../../test/openid-issuer.ts";
import type { JwtVerifier } from "./jwt.ts";

const cooldownMs = 10_000;
const rememberMs = 15_000;
const keysMaxAgeMs = 3_600_000;

const { issuer, key, clock, trust, good, ask, reset, stop } = await openJwtFixture();
let jwts: JwtVerifier;

beforeEach(() => {
  reset();
  jwts = trust({});
});
afterAll(stop);

const alice = expect.objectContaining({ user: "alice", garden: "alice", scope: "write" });
const down = () => new Response("", { status: 503 });
/** A token that outlives every time of these tests, and differs from all others. */
let signed = 0;
const signLong = (by: SigningKey) => sign(by, good({ exp: clock.nowMs, jti: String(signed++) }));

describe("keys", () => {
  test("that are new count once the issuer may be asked again", async () => {
    expect(await ask(await signLong(key))).toEqual(alice);
    const added = await issuer.makeKey();
    expect(await ask(await signLong(added))).toBe("unauthenticated");
    clock.nowMs += cooldownMs;
    expect(await ask(await signLong(added))).toEqual(alice);
    expect(issuer.asked).toBe(2);
  });

  test("are not asked for if a token names another issuer", async () => {
    const foreign = await sign(await makeSigningKey(), good({ iss: "https://evil.test" }));
    expect(await ask(foreign)).toBe("unauthenticated");
    expect(issuer.asked).toBe(0);
  });

  test("that are withdrawn stop counting: at once for new tokens, soon for remembered ones", async () => {
    const token = await signLong(key);
    expect(await ask(token)).toEqual(alice);
    issuer.published = [(await makeSigningKey()).publicJwk];
    clock.nowMs += cooldownMs;
    await jwts.keys.refresh();
    expect(await ask(await signLong(key))).toBe("unauthenticated");
    clock.nowMs += rememberMs;
    expect(await ask(token)).toBe("unauthenticated");
  });
});

describe("a flood of tokens with unknown keys", () => {
  async function flood(): Promise<void> {
    const unknown = await makeSigningKey();
    for (let count = 0; count < 50; count++) {
      const token = await signLong({ ...unknown, kid: `${count}` });
      expect(await ask(token)).toBe("unauthenticated");
    }
  }

  test("reaches the issuer once in ten seconds, however many they are", async () => {
    await ask(await signLong(key));
    clock.nowMs += cooldownMs;
    await flood();
    expect(issuer.asked).toBe(2);
    clock.nowMs += cooldownMs - 1;
    await flood();
    expect(issuer.asked).toBe(2);
    // Nor an issuer that is down, which locks nobody out.
    issuer.respond = (path) => (path === "/keys" ? down() : undefined);
    clock.nowMs += 1;
    await flood();
    expect(issuer.asked).toBe(3);
    expect(await ask(await signLong(key))).toEqual(alice);
  });
});

describe("an issuer that can't be reached", () => {
  test("leaves its keys in force for an hour, and not a millisecond longer", async () => {
    expect(await ask(await signLong(key))).toEqual(alice);
    issuer.respond = down;
    clock.nowMs += keysMaxAgeMs - 1;
    await expect(jwts.keys.refresh()).rejects.toThrow();
    expect(await ask(await signLong(key))).toEqual(alice);
    clock.nowMs += 1;
    expect(await ask(await signLong(key))).toBe("unavailable");
    issuer.respond = undefined;
    clock.nowMs += cooldownMs;
    expect(await ask(await signLong(key))).toEqual(alice);
  });

  test("does not hold up tokens whose keys are known", async () => {
    await ask(await signLong(key));
    const silence = Promise.withResolvers<Response>();
    issuer.respond = () => silence.promise;
    clock.nowMs += cooldownMs;
    const refreshing = jwts.keys.refresh().catch(() => {});
    expect(await ask(await signLong(key))).toEqual(alice);
    silence.resolve(down());
    await refreshing;
  });
});

describe("what an issuer publishes", () => {
  test("is not read through a redirection, not even to the same place", async () => {
    issuer.respond = (path) => {
      if (path === "/moved") return Response.json({ keys: issuer.published });
      return path === "/keys" ? Response.redirect("/moved") : undefined;
    };
    expect(await ask(await signLong(key))).toBe("unavailable");
    trust({ keysUrl: `${issuer.url}/moved` });
    expect(await ask(await signLong(key))).toEqual(alice);
  });

  test("is not believed if it has no keys; the keys from before count on", async () => {
    expect(await ask(await signLong(key))).toEqual(alice);
    issuer.respond = (path) => (path === "/keys" ? Response.json({}) : undefined);
    clock.nowMs += cooldownMs;
    await expect(jwts.keys.refresh()).rejects.toThrow();
    expect(await ask(await signLong(key))).toEqual(alice);
    trust({});
    expect(await ask(await signLong(key))).toBe("unavailable");
  });

  test.each<[name: string, document: () => object]>([
    [
      "is for another issuer",
      () => ({ issuer: "https://evil.test", jwks_uri: `${issuer.url}/keys` }),
    ],
    ["names no keys", () => ({ issuer: issuer.url })],
    ["names keys without TLS", () => ({ issuer: issuer.url, jwks_uri: "http://evil.test/keys" })],
    [
      "names another service on this machine",
      () => ({ issuer: issuer.url, jwks_uri: "http://127.0.0.1:1/keys" }),
    ],
  ])("is not believed if the discovery document %s", async (_, document) => {
    issuer.respond = (path) => (path === "/keys" ? undefined : Response.json(document()));
    await expect(jwts.keys.refresh()).rejects.toThrow("/.well-known/openid-configuration");
    expect(issuer.asked).toBe(0);
  });
});
