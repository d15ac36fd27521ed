/**
 * The caller that a JWT stands for, which JWTs are refused, and how long the issuer's keys count.
 * The issuer is real, the clocks aren't.
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
import { Clocks } from "../shared/clocks.ts";
import { type JwtIssuer, JwtVerifier } from "./jwt.ts";

/** How far the issuer's clock may be off. */
const skewMs = 30_000;
/** How often the issuer is asked for its keys, at most. */
const cooldownMs = 10_000;
/** How long a token isn't verified again. */
const rememberMs = 15_000;
/** How long keys count while the issuer can't be asked. */
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

/** Starts with a new verifier, which knows no keys and no tokens yet. */
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
async function verify(token: string): Promise<unknown> {
  return jwts.findCached(token) ?? jwts.verify(token).catch(({ code }) => code);
}

type Fields = Record<string, unknown>;

/** Signs a good token in which these claims and fields of the header are replaced. */
function signToken(claims: Fields = {}, header: Fields = {}): Promise<string> {
  return sign(key, issuer.claims(wallMs, claims), header);
}

/** Signs a good token that wasn't verified before, and that outlives every time of these tests. */
function signNewToken(by: SigningKey = key): Promise<string> {
  // As seconds, these milliseconds are thousands of years from now.
  return sign(by, issuer.claims(wallMs, { exp: wallMs, jti: crypto.randomUUID() }));
}

const alice = expect.objectContaining({ user: "alice", garden: "alice", scope: "write" });

describe("a good token", () => {
  test("stands for its subject, in the subject's own garden", async () => {
    expect(await verify(await signToken())).toEqual({
      credential: `${issuer.url} alice`,
      user: "alice",
      garden: "alice",
      scope: "write",
      expiresAtMs: wallMs + 60_000,
    });
  });

  test("is named by its own id", async () => {
    expect(await verify(await signToken({ jti: "renewed" }))).toEqual({
      credential: `${issuer.url} alice`,
      tokenId: "renewed",
      user: "alice",
      garden: "alice",
      scope: "write",
      expiresAtMs: wallMs + 60_000,
    });
  });

  test("has no id if that holds a line break, which would get into the log", async () => {
    const caller = await verify(await signToken({ jti: "a\nb" }));
    expect(caller).toEqual(alice);
    expect(caller).toHaveProperty("tokenId", undefined);
  });

  test("is accepted for any of the configured audiences", async () => {
    trust({ audiences: ["second", audience] });
    expect(await verify(await signToken({ aud: ["other", audience] }))).toEqual(alice);
    expect(await verify(await signToken({ aud: "second" }))).toEqual(alice);
  });

  test.each([undefined, "jwt", "at+jwt", "application/at+jwt"])(
    "can have the type %p",
    async (typ) => {
      expect(await verify(await signToken({}, { typ }))).toEqual(alice);
    },
  );

  test("needn't say which key it is signed with", async () => {
    expect(await verify(await signToken({}, { kid: undefined }))).toEqual(alice);
  });

  test.each(["RS256", "RS384", "RS512", "ES384", "ES512", "EdDSA"])(
    "can be signed with %s",
    async (algorithm) => {
      const otherKey = await issuer.makeKey(algorithm);
      expect(await verify(await sign(otherKey, issuer.claims(wallMs)))).toEqual(alice);
    },
  );

  test("is valid until its expiry and the clock skew, even if it was verified before", async () => {
    const token = await signToken({ exp: wallMs / 1_000 });
    passTime(skewMs - 1);
    expect(await verify(token)).toEqual(alice);
    passTime(1);
    expect(await verify(token)).toBe("unauthenticated");
  });
});

describe("with a configured garden claim", () => {
  const gardenClaim = "https://plants.test/garden";

  beforeEach(() => trust({ gardenClaim }));

  test("a token opens the garden that the claim names", async () => {
    expect(await verify(await signToken({ [gardenClaim]: "team" }))).toMatchObject({
      user: "alice",
      garden: "team",
      scope: "write",
    });
  });

  test.each([
    { problem: "no such claim", claims: {} },
    { problem: "a number in it", claims: { [gardenClaim]: 7 } },
    { problem: "a line break in it", claims: { [gardenClaim]: "a\nb" } },
  ])("a token with $problem is refused", async ({ claims }) => {
    expect(await verify(await signToken(claims))).toBe("unauthenticated");
  });
});

describe("a token with the scope", () => {
  test("read can read", async () => {
    const token = await signToken({ scope: "openid profile read" });
    expect(await verify(token)).toMatchObject({ scope: "read" });
  });

  test("write can write, even if it also has read", async () => {
    const token = await signToken({ scope: "read write" });
    expect(await verify(token)).toMatchObject({ scope: "write" });
  });

  test("write in an array can write", async () => {
    const token = await signToken({ scope: ["openid", "write"] });
    expect(await verify(token)).toMatchObject({ scope: "write" });
  });

  test.each([
    { scope: undefined },
    { scope: "READ readwrite read,write" },
    { scope: { write: 1 } },
  ])("$scope is valid, but can do nothing", async ({ scope }) => {
    const caller = await verify(await signToken({ scope }));
    expect(caller).toMatchObject({ user: "alice", scope: undefined });
  });
});

describe("a token is refused", () => {
  test.each(["iss", "aud", "exp", "sub"])("without the claim %s", async (claim) => {
    expect(await verify(await signToken({ [claim]: undefined }))).toBe("unauthenticated");
  });

  test("of another issuer", async () => {
    expect(await verify(await signToken({ iss: "https://evil.test" }))).toBe("unauthenticated");
  });

  test("for another audience", async () => {
    const token = await signToken({ aud: `${audience}.evil.test` });
    expect(await verify(token)).toBe("unauthenticated");
  });

  test.each(["", 7, "alice\u0000"])("with the subject %j", async (sub) => {
    expect(await verify(await signToken({ sub }))).toBe("unauthenticated");
  });

  test("if it's bound to a key of the sender", async () => {
    expect(await verify(await signToken({ cnf: { jkt: "x" } }))).toBe("unauthenticated");
  });

  test.each(["logout+jwt", "id_token", "at+jwt2"])("if its type is %s", async (typ) => {
    expect(await verify(await signToken({}, { typ }))).toBe("unauthenticated");
  });

  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

  test.each(["none", "HS256"])("with the algorithm %s and no signature", async (alg) => {
    const text = `${encode({ alg, kid: key.kid })}.${encode(issuer.claims(wallMs))}`;
    expect(await verify(`${text}.`)).toBe("unauthenticated");
  });

  test.each(["none", "HS256"])(
    "with the algorithm %s and the public key as a shared secret",
    async (alg) => {
      const text = `${encode({ alg, kid: key.kid })}.${encode(issuer.claims(wallMs))}`;
      const hmac = createHmac("sha256", JSON.stringify(key.publicJwk)).update(text);
      expect(await verify(`${text}.${hmac.digest("base64url")}`)).toBe("unauthenticated");
    },
  );

  test("if it brings its key along or points to one, which isn't fetched", async () => {
    const ownKey = await makeSigningKey();
    const evil = startIssuer();
    evil.published = [ownKey.publicJwk];
    const url = `${evil.url}/keys`;
    for (const kid of [ownKey.kid, key.kid, undefined]) {
      const header = { jwk: ownKey.publicJwk, jku: url, x5u: url, kid };
      const token = await sign(ownKey, issuer.claims(wallMs), header);
      expect(await verify(token)).toBe("unauthenticated");
    }
    expect(evil.asked).toBe(0);
    await evil.stop();
  });
});

const unavailable = () => new Response("", { status: 503 });

describe("a key that the issuer adds", () => {
  test("counts once the issuer may be asked again", async () => {
    expect(await verify(await signNewToken())).toEqual(alice);
    const added = await issuer.makeKey();
    expect(await verify(await signNewToken(added))).toBe("unauthenticated");
    passTime(cooldownMs);
    expect(await verify(await signNewToken(added))).toEqual(alice);
  });
});

describe("a key that the issuer withdraws", () => {
  test("no longer counts once the keys are fetched again", async () => {
    expect(await verify(await signNewToken())).toEqual(alice);
    const added = await makeSigningKey();
    issuer.published = [added.publicJwk];
    passTime(cooldownMs);
    // A token with an unknown key has them fetched.
    expect(await verify(await signNewToken(added))).toEqual(alice);
    expect(await verify(await signNewToken())).toBe("unauthenticated");
  });

  test("counts 15 seconds at most for a token that was just verified", async () => {
    const token = await signNewToken();
    expect(await verify(token)).toEqual(alice);
    issuer.published = [];
    passTime(cooldownMs);
    await jwts.keys.refresh();
    passTime(rememberMs - cooldownMs - 1);
    expect(await verify(token)).toEqual(alice);
    passTime(1);
    expect(await verify(token)).toBe("unauthenticated");
  });
});

describe.each([
  {
    event: "the clock is set back",
    passTimeOddly(durationMs: number) {
      monotonicMs += durationMs;
      wallMs -= 3_600_000;
    },
  },
  {
    event: "the machine sleeps",
    passTimeOddly(durationMs: number) {
      wallMs += durationMs;
    },
  },
])("even if $event,", ({ passTimeOddly }) => {
  test("a withdrawn key no longer counts once the keys are fetched again", async () => {
    expect(await verify(await signNewToken())).toEqual(alice);
    issuer.published = [];
    passTimeOddly(cooldownMs);
    await jwts.keys.refresh();
    expect(await verify(await signNewToken())).toBe("unauthenticated");
  });

  test("a token is verified again after 15 seconds", async () => {
    const token = await signNewToken();
    expect(await verify(token)).toEqual(alice);
    issuer.published = [];
    passTimeOddly(cooldownMs);
    await jwts.keys.refresh();
    passTimeOddly(rememberMs - cooldownMs);
    expect(await verify(token)).toBe("unauthenticated");
  });

  test("the keys count for an hour at most while the issuer is down", async () => {
    expect(await verify(await signNewToken())).toEqual(alice);
    issuer.respond = unavailable;
    passTimeOddly(keysMaxAgeMs);
    expect(await verify(await signNewToken())).toBe("unavailable");
  });
});

describe("the issuer is asked for its keys", () => {
  /** Five tokens with unknown keys. */
  async function sendUnknownTokens(): Promise<void> {
    const unknown = await makeSigningKey();
    for (let number = 0; number < 5; number++) {
      const token = await signNewToken({ ...unknown, kid: `unknown-${number}` });
      expect(await verify(token)).toBe("unauthenticated");
    }
  }

  test("not at all for a token of another issuer", async () => {
    const unknown = await makeSigningKey();
    const claims = issuer.claims(wallMs, { iss: "https://evil.test" });
    expect(await verify(await sign(unknown, claims))).toBe("unauthenticated");
    expect(issuer.asked).toBe(0);
  });

  test("once in ten seconds, however many tokens have unknown keys", async () => {
    await verify(await signNewToken());
    expect(issuer.asked).toBe(1);
    passTime(cooldownMs);
    await sendUnknownTokens();
    expect(issuer.asked).toBe(2);
    passTime(cooldownMs - 1);
    await sendUnknownTokens();
    expect(issuer.asked).toBe(2);
    passTime(1);
    await sendUnknownTokens();
    expect(issuer.asked).toBe(3);
  });

  test("once in ten seconds even if it's down, and tokens with known keys stay valid", async () => {
    await verify(await signNewToken());
    expect(issuer.asked).toBe(1);
    issuer.respond = (path) => (path === "/keys" ? unavailable() : undefined);
    passTime(cooldownMs);
    await sendUnknownTokens();
    expect(issuer.asked).toBe(2);
    expect(await verify(await signNewToken())).toEqual(alice);
  });
});

describe("while the issuer is down,", () => {
  test("its keys count for an hour, and not a millisecond longer", async () => {
    expect(await verify(await signNewToken())).toEqual(alice);
    issuer.respond = unavailable;
    passTime(keysMaxAgeMs - 1);
    await expect(jwts.keys.refresh()).rejects.toThrow();
    expect(await verify(await signNewToken())).toEqual(alice);
    passTime(1);
    expect(await verify(await signNewToken())).toBe("unavailable");
  });

  test("tokens are unavailable after that hour, and valid once it's back", async () => {
    expect(await verify(await signNewToken())).toEqual(alice);
    issuer.respond = unavailable;
    passTime(keysMaxAgeMs);
    expect(await verify(await signNewToken())).toBe("unavailable");
    issuer.respond = undefined;
    passTime(cooldownMs);
    expect(await verify(await signNewToken())).toEqual(alice);
  });
});

const keysUrl = `${issuer.url}/keys`;

test.each([
  {
    problem: "is for another issuer",
    document: Response.json({ issuer: "https://evil.test", jwks_uri: keysUrl }),
  },
  { problem: "names no keys", document: Response.json({ issuer: issuer.url }) },
  {
    problem: "names another local service",
    document: Response.json({ issuer: issuer.url, jwks_uri: "http://127.0.0.1:1/keys" }),
  },
  { problem: "is a redirect", document: Response.redirect("/keys") },
])("no keys are fetched if the discovery document $problem", async ({ document }) => {
  issuer.respond = (path) => (path === "/keys" ? undefined : document);
  await expect(jwts.keys.refresh()).rejects.toThrow("/.well-known/openid-configuration");
  expect(issuer.asked).toBe(0);
});
