/**
 * Who a JWT stands for, which are refused, and the issuer's keys over time. The issuer is real, the
 * clocks are not.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import {
  audience,
  makeSigningKey,
  type SigningKey,
  sign,
  startIssuer,
} from "../../testing/openid-issuer.ts";
import type { Caller } from "../domain/caller.ts";
import { Clocks } from "../shared/clocks.ts";
import { type JwtIssuer, JwtVerifier } from "./jwt.ts";

const skewMs = 30_000;
const cooldownMs = 10_000;
const rememberMs = 15_000;
const keysMaxAgeMs = 3_600_000;

const issuer = startIssuer();
const key = await issuer.makeKey();
const clocks = new Clocks(
  () => wallMs,
  () => monotonicMs,
);
let wallMs: number;
let monotonicMs: number;
let jwts: JwtVerifier;

function trust(settings: Partial<JwtIssuer> = {}): void {
  jwts = new JwtVerifier({ ...issuer.trust, ...settings }, clocks);
}

beforeEach(() => {
  wallMs = 1_800_000_000_000;
  monotonicMs = 0;
  issuer.respond = undefined;
  issuer.asked = 0;
  issuer.published = [key.publicJwk];
  trust();
});
afterAll(() => issuer.stop());

function passTime(durationMs: number): void {
  wallMs += durationMs;
  monotonicMs += durationMs;
}

/** The caller of a token, or the code of its refusal. */
const ask = async (token: string): Promise<unknown> =>
  jwts.findCached(token) ?? jwts.verify(token).catch(({ code }) => code);

type Fields = Record<string, unknown>;

/** The claims of a good token, with some replaced. */
const good = (others: Fields = {}) => issuer.claims(wallMs, others);
const askWith = async (others: Fields, header: Fields = {}) =>
  ask(await sign(key, good(others), header));

const alice = expect.objectContaining({ user: "alice", garden: "alice", scope: "write" });

describe("a good token", () => {
  test("stands for its subject, in the subject's own garden", async () => {
    const credential = `${issuer.url} alice`;
    const expiresAtMs = wallMs + 60_000;
    const caller = { credential, user: "alice", garden: "alice", scope: "write", expiresAtMs };
    expect(await askWith({})).toEqual(caller);
    // Its own id is only for the log, so that no line break gets there.
    expect(await askWith({ jti: "renewed" })).toEqual({ ...caller, tokenId: "renewed" });
    expect(await askWith({ jti: "a\nb" })).toEqual(caller);
  });

  test("opens the garden that the configured claim names, and needs that claim", async () => {
    const gardenClaim = "https://plants.test/garden";
    trust({ gardenClaim });
    const team = { user: "alice", garden: "team", scope: "write" };
    expect(await askWith({ [gardenClaim]: "team" })).toMatchObject(team);
    for (const others of [{}, { [gardenClaim]: 7 }, { [gardenClaim]: "a\nb" }]) {
      expect(await askWith(others)).toBe("unauthenticated");
    }
  });

  test("may be of several algorithms, audiences and types, and leave out which key it is", async () => {
    trust({ audiences: ["second", audience] });
    for (const aud of [["other", audience], "second"])
      expect(await askWith({ aud })).toEqual(alice);
    for (const typ of [undefined, "jwt", "at+jwt", "application/at+jwt"]) {
      expect(await askWith({}, { typ, kid: undefined })).toEqual(alice);
    }
    const algorithms = ["RS256", "RS384", "RS512", "ES384", "ES512", "EdDSA"];
    const keys = await Promise.all(algorithms.map((each) => issuer.makeKey(each)));
    trust();
    for (const each of keys) expect(await ask(await sign(each, good()))).toEqual(alice);
  });

  test.each<[scope: unknown, expected: string | undefined]>([
    ["openid profile read", "read"],
    ["read write", "write"],
    [["openid", "write"], "write"],
    [undefined, undefined],
    ["READ readwrite read,write", undefined],
    [{ write: 1 }, undefined],
  ])("with the scope %p may %s", async (scope, expected) => {
    expect(((await askWith({ scope })) as Caller).scope).toBe(expected as Caller["scope"]);
  });

  test("ends at its expiry and the clock skew, even if it was verified before", async () => {
    const token = await sign(key, good({ exp: wallMs / 1_000 }));
    passTime(skewMs - 1);
    expect(await ask(token)).toEqual(alice);
    passTime(1);
    expect(await ask(token)).toBe("unauthenticated");
  });
});

describe("refuses a token", () => {
  test.each<Fields>([
    ...["iss", "aud", "exp", "sub"].map((claim) => ({ [claim]: undefined })),
    { iss: "https://evil.test" },
    { aud: `${audience}.evil.test` },
    ...["", 7, "alice\u0000"].map((sub) => ({ sub })),
    // Bound to a key of the sender's.
    { cnf: { jkt: "x" } },
  ])("with %p", async (claims) => expect(await askWith(claims)).toBe("unauthenticated"));

  test.each(["logout+jwt", "id_token", "at+jwt2"])("of the type %s", async (typ) =>
    expect(await askWith({}, { typ })).toBe("unauthenticated"),
  );

  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

  test("without a signature, or with the public key as a shared secret", async () => {
    for (const alg of ["none", "HS256"]) {
      const text = `${encode({ alg, kid: key.kid })}.${encode(good())}`;
      const hmac = createHmac("sha256", JSON.stringify(key.publicJwk)).update(text);
      for (const signature of ["", hmac.digest("base64url")]) {
        expect(await ask(`${text}.${signature}`)).toBe("unauthenticated");
      }
    }
  });

  test("that brings its key along or points to one", async () => {
    const own = await makeSigningKey();
    const evil = startIssuer();
    evil.published = [own.publicJwk];
    const url = `${evil.url}/keys`;
    const brought = { jwk: own.publicJwk, jku: url, x5u: url };
    for (const kid of [own.kid, key.kid, undefined]) {
      expect(await ask(await sign(own, good(), { ...brought, kid }))).toBe("unauthenticated");
    }
    expect(evil.asked).toBe(0);
    await evil.stop();
  });
});

const down = () => new Response("", { status: 503 });
/** A token that outlives every time of these tests, and differs from all others. */
let signed = 0;
const signLong = (by: SigningKey = key) => sign(by, good({ exp: wallMs, jti: String(signed++) }));

describe("the issuer's keys", () => {
  test("count once the issuer may be asked again, and no longer once it withdraws them", async () => {
    const token = await signLong();
    expect(await ask(token)).toEqual(alice);
    const added = await issuer.makeKey();
    issuer.published = [added.publicJwk];
    expect(await ask(await signLong(added))).toBe("unauthenticated");
    passTime(cooldownMs);
    expect(await ask(await signLong(added))).toEqual(alice);
    expect(await ask(await signLong())).toBe("unauthenticated");
    // It was verified a moment ago.
    passTime(rememberMs - cooldownMs);
    expect(await ask(token)).toBe("unauthenticated");
  });

  test.each([
    [
      "the clock is set back",
      (durationMs: number) => {
        monotonicMs += durationMs;
        wallMs -= 3_600_000;
      },
    ],
    [
      "the machine sleeps",
      (durationMs: number) => {
        wallMs += durationMs;
      },
    ],
  ])("count no longer than usual, even if %s", async (_, passTimeOddly) => {
    const token = await signLong();
    expect(await ask(token)).toEqual(alice);
    issuer.published = [];
    passTimeOddly(cooldownMs);
    await jwts.keys.refresh();
    expect(await ask(await signLong())).toBe("unauthenticated");
    passTimeOddly(rememberMs - cooldownMs);
    expect(await ask(token)).toBe("unauthenticated");
    // While the issuer is away, too.
    issuer.published = [key.publicJwk];
    passTimeOddly(cooldownMs);
    expect(await ask(await signLong())).toEqual(alice);
    issuer.respond = down;
    passTimeOddly(keysMaxAgeMs);
    expect(await ask(await signLong())).toBe("unavailable");
  });

  test("are asked for once in ten seconds, however many tokens name unknown ones", async () => {
    const unknown = await makeSigningKey();
    const flood = async () => {
      for (let count = 0; count < 5; count++) {
        const token = await signLong({ ...unknown, kid: `${count}` });
        expect(await ask(token)).toBe("unauthenticated");
      }
    };
    await ask(await sign(unknown, good({ iss: "https://evil.test" })));
    expect(issuer.asked).toBe(0);
    await ask(await signLong());
    passTime(cooldownMs);
    await flood();
    passTime(cooldownMs - 1);
    await flood();
    expect(issuer.asked).toBe(2);
    // Nor an issuer that is down, which locks nobody out.
    issuer.respond = (path) => (path === "/keys" ? down() : undefined);
    passTime(1);
    await flood();
    expect(issuer.asked).toBe(3);
    expect(await ask(await signLong())).toEqual(alice);
  });

  test("stay in force for an hour while it is away, and not a millisecond longer", async () => {
    expect(await ask(await signLong())).toEqual(alice);
    issuer.respond = down;
    passTime(keysMaxAgeMs - 1);
    await expect(jwts.keys.refresh()).rejects.toThrow();
    expect(await ask(await signLong())).toEqual(alice);
    passTime(1);
    expect(await ask(await signLong())).toBe("unavailable");
    issuer.respond = undefined;
    passTime(cooldownMs);
    expect(await ask(await signLong())).toEqual(alice);
  });

  const keysUrl = `${issuer.url}/keys`;

  test.each([
    ["is for another issuer", Response.json({ issuer: "https://evil.test", jwks_uri: keysUrl })],
    ["names no keys", Response.json({ issuer: issuer.url })],
    [
      "names another local service",
      Response.json({ issuer: issuer.url, jwks_uri: "http://127.0.0.1:1/keys" }),
    ],
    ["is elsewhere", Response.redirect("/keys")],
  ])("are not looked for if the discovery document %s", async (_, document) => {
    issuer.respond = (path) => (path === "/keys" ? undefined : document);
    await expect(jwts.keys.refresh()).rejects.toThrow("/.well-known/openid-configuration");
    expect(issuer.asked).toBe(0);
  });
});
