/**
 * Who a JWT stands for, which are refused, and the issuer's keys over time. The issuer is real, the
 * clock is not.
 */
import { afterAll, beforeEach, describe, expect, setSystemTime, spyOn, test } from "bun:test";
import { createHmac } from "node:crypto";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import {
  audience,
  makeSigningKey,
  type SigningKey,
  sign,
  startIssuer,
} from "../../test/openid-issuer.ts";
import type { Caller } from "../domain/caller.ts";
import { type JwtIssuer, JwtVerifier } from "./jwt.ts";

const skewMs = 30_000;
const cooldownMs = 10_000;
const rememberMs = 15_000;
const keysMaxAgeMs = 3_600_000;

const issuer = startIssuer();
const key = await issuer.makeKey();
let jwts: JwtVerifier;

function trust(settings: Partial<JwtIssuer> = {}): void {
  jwts = new JwtVerifier({ ...issuer.trust, ...settings });
}

beforeEach(() => {
  setSystemTime(1_800_000_000_000);
  issuer.respond = undefined;
  issuer.asked = 0;
  issuer.published = [key.publicJwk];
  trust();
});
afterAll(() => {
  setSystemTime();
  return issuer.stop();
});

const passTime = (durationMs: number) => setSystemTime(Date.now() + durationMs);

/** The caller of a token, or the code of its refusal. */
const ask = async (token: string): Promise<unknown> =>
  jwts.findCached(token) ?? jwts.verify(token).catch(({ code }) => code);

type Fields = Record<string, unknown>;

/** The claims of a good token, with some replaced. */
const good = (others: Fields = {}) => issuer.claims(Date.now(), others);
const askWith = async (others: Fields, header: Fields = {}) =>
  ask(await sign(key, good(others), header));

const alice = expect.objectContaining({ user: "alice", garden: "alice", scope: "write" });

describe("a good token", () => {
  test("stands for its subject, in the subject's own garden", async () => {
    const credential = `${issuer.url} alice`;
    const expiresAtMs = Date.now() + 60_000;
    const caller = { credential, user: "alice", garden: "alice", scope: "write", expiresAtMs };
    expect(await askWith({})).toEqual(caller);
    // Its own id is only for the log, so that no line break gets there.
    expect(await askWith({ jti: "renewed" })).toEqual({ ...caller, tokenId: "renewed" });
    expect(await askWith({ jti: "a\nb" })).toEqual(caller);
    const never = new Date(
      ((await askWith({ exp: 2 ** 53 - 1 })) as Caller).expiresAtMs ?? Number.NaN,
    );
    expect(never.toISOString()).toBe("+275760-09-13T00:00:00.000Z");
  });

  test("opens the garden that the configured claim names, and needs that claim", async () => {
    const gardenClaim = "https://plants.test/garden";
    trust({ gardenClaim });
    const team = { user: "alice", garden: "team", scope: "write" };
    expect(await askWith({ [gardenClaim]: "team" })).toMatchObject(team);
    for (const others of [{}, { [gardenClaim]: 7 }, { [gardenClaim]: "a\nb" }]) {
      expect(await askWith(others)).toBe("unauthenticated");
    }
    expect(await askWith({ [gardenClaim]: "team", sub: "a\nb" })).toBe("unauthenticated");
  });

  test.each(["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"])(
    "may be signed with %s",
    async (algorithm) => {
      expect(await ask(await sign(await issuer.makeKey(algorithm), good()))).toEqual(alice);
    },
  );

  test("may be for several audiences, of several types, and leave out which key it is", async () => {
    trust({ audiences: ["second", audience] });
    for (const aud of [["other", audience], "second"])
      expect(await askWith({ aud })).toEqual(alice);
    for (const typ of [undefined, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"]) {
      expect(await askWith({}, { typ, kid: undefined })).toEqual(alice);
    }
  });

  test("has the scope that its claim lists by its exact name", async () => {
    const scopes: Record<string, readonly unknown[]> = {
      read: ["read", "openid profile read"],
      write: ["read write", ["openid", "write"]],
      none: [
        undefined,
        "",
        "openid",
        "READ",
        "readwrite",
        "read,write",
        ["read write"],
        { write: 1 },
      ],
    };
    for (const [expected, claims] of Object.entries(scopes)) {
      for (const scope of claims) {
        const { scope: found = "none" } = (await askWith({ scope })) as { scope?: string };
        expect([scope, found]).toEqual([scope, expected]);
      }
    }
  });

  test("ends at its expiry and the clock skew, to the second", async () => {
    const token = await sign(key, good({ exp: Date.now() / 1_000 }));
    passTime(skewMs - 1);
    expect(await ask(token)).toEqual(alice);
    passTime(1);
    expect(await ask(token)).toBe("unauthenticated");
    trust();
    expect(await ask(token)).toBe("unauthenticated");
    passTime(-1_000);
    expect(await ask(token)).toEqual(alice);
  });
});

describe("refuses a token", () => {
  test.each<Fields>([
    ...["iss", "aud", "exp", "sub"].map((claim) => ({ [claim]: undefined })),
    { aud: `${audience}.evil.test` },
    { exp: "9999999999" },
    ...["", 7, "alice\u0000"].map((sub) => ({ sub })),
    // Bound to a key of the sender's.
    { cnf: { jkt: "x" } },
  ])("with %p", async (claims) => expect(await askWith(claims)).toBe("unauthenticated"));

  test.each(["logout+jwt", "dpop+jwt", "id_token", "at+jwt2"])("of the type %s", async (typ) =>
    expect(await askWith({}, { typ })).toBe("unauthenticated"),
  );

  test("whose nbf lies ahead by more than the clock skew", async () => {
    const nbf = (Date.now() + skewMs) / 1_000;
    expect(await askWith({ nbf })).toEqual(alice);
    expect(await askWith({ nbf: nbf + 1 })).toBe("unauthenticated");
  });

  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

  test.each(["none", "nOnE", "", "HS256"])(
    "whose algorithm is %p, even if the public key signs it as a shared secret",
    async (alg) => {
      const text = `${encode({ alg, kid: key.kid })}.${encode(good())}`;
      const hmac = createHmac("sha256", JSON.stringify(key.publicJwk)).update(text);
      for (const signature of ["", "AAAA", hmac.digest("base64url")]) {
        expect(await ask(`${text}.${signature}`)).toBe("unauthenticated");
      }
    },
  );

  test("that brings its key along or points to one", async () => {
    const own = await makeSigningKey();
    let visits = 0;
    await using evil = Bun.serve({
      port: 0,
      fetch() {
        visits++;
        return Response.json({ keys: [own.publicJwk] });
      },
    });
    const url = String(evil.url);
    const brought = { jwk: own.publicJwk, jku: url, x5u: url, x5c: ["MIIB"] };
    for (const kid of [own.kid, key.kid, undefined, url]) {
      trust();
      expect(await ask(await sign(own, good(), { ...brought, kid }))).toBe("unauthenticated");
    }
    expect(visits).toBe(0);
  });
});

test("forged tokens are checked a few at a time, and those verified before have places of their own", async () => {
  const token = await sign(key, good());
  expect(await ask(token)).toEqual(alice);
  passTime(rememberMs);
  expect(jwts.findCached(token)).toBeUndefined();
  expect(jwts.findGarden(token)).toBe("alice");

  const held = Promise.withResolvers<void>();
  const { verify } = crypto.subtle;
  const checking = spyOn(crypto.subtle, "verify").mockImplementation(async (...args) => {
    if (checking.mock.calls.length <= 4) await held.promise;
    return verify.apply(crypto.subtle, args);
  });
  const forger = { ...(await makeSigningKey()), kid: key.kid };
  const forged = Array.from({ length: 20 }, async (_, index) =>
    ask(await sign(forger, good({ jti: String(index) }))),
  );
  await waitFor(() => checking.mock.calls.length === 4 || undefined);
  expect(await ask(token)).toEqual(alice);
  expect(checking).toHaveBeenCalledTimes(5);
  held.resolve();
  expect(new Set(await Promise.all(forged))).toEqual(new Set(["unauthenticated"]));
  checking.mockRestore();
});

const down = () => new Response("", { status: 503 });
/** A token that outlives every time of these tests, and differs from all others. */
let signed = 0;
const signLong = (by: SigningKey = key) =>
  sign(by, good({ exp: Date.now(), jti: String(signed++) }));

describe("the issuer's keys", () => {
  test("count once it may be asked again, if they are new", async () => {
    expect(await ask(await signLong())).toEqual(alice);
    const added = await issuer.makeKey();
    expect(await ask(await signLong(added))).toBe("unauthenticated");
    passTime(cooldownMs);
    expect(await ask(await signLong(added))).toEqual(alice);
    expect(issuer.asked).toBe(2);
  });

  test("are not asked for if a token names another issuer", async () => {
    const foreign = await sign(await makeSigningKey(), good({ iss: "https://evil.test" }));
    expect(await ask(foreign)).toBe("unauthenticated");
    expect(issuer.asked).toBe(0);
  });

  test("stop counting once withdrawn: at once for new tokens, soon for remembered ones", async () => {
    const token = await signLong();
    expect(await ask(token)).toEqual(alice);
    issuer.published = [(await makeSigningKey()).publicJwk];
    passTime(cooldownMs);
    await jwts.keys.refresh();
    expect(await ask(await signLong())).toBe("unauthenticated");
    passTime(rememberMs);
    expect(await ask(token)).toBe("unauthenticated");
  });

  test("are asked for once in ten seconds, however many tokens name unknown ones", async () => {
    const unknown = await makeSigningKey();
    const flood = async () => {
      for (let count = 0; count < 20; count++) {
        const token = await signLong({ ...unknown, kid: `${count}` });
        expect(await ask(token)).toBe("unauthenticated");
      }
    };
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

  test("count without a wait while it hangs", async () => {
    await ask(await signLong());
    const silence = Promise.withResolvers<Response>();
    issuer.respond = () => silence.promise;
    passTime(cooldownMs);
    const refreshing = jwts.keys.refresh().catch(() => {});
    expect(await ask(await signLong())).toEqual(alice);
    silence.resolve(down());
    await refreshing;
  });

  test("are not read through a redirection, not even to the same place", async () => {
    issuer.respond = (path) => {
      if (path === "/moved") return Response.json({ keys: issuer.published });
      return path === "/keys" ? Response.redirect("/moved") : undefined;
    };
    expect(await ask(await signLong())).toBe("unavailable");
    trust({ keysUrl: `${issuer.url}/moved` });
    expect(await ask(await signLong())).toEqual(alice);
  });

  test("are those from before if it publishes none", async () => {
    expect(await ask(await signLong())).toEqual(alice);
    issuer.respond = (path) => (path === "/keys" ? Response.json({}) : undefined);
    passTime(cooldownMs);
    await expect(jwts.keys.refresh()).rejects.toThrow();
    expect(await ask(await signLong())).toEqual(alice);
    trust();
    expect(await ask(await signLong())).toBe("unavailable");
  });

  test.each([
    ["is for another issuer", { issuer: "https://evil.test", jwks_uri: `${issuer.url}/keys` }],
    ["names no keys", { issuer: issuer.url }],
    ["names keys without TLS", { issuer: issuer.url, jwks_uri: "http://evil.test/keys" }],
    ["names another local service", { issuer: issuer.url, jwks_uri: "http://127.0.0.1:1/keys" }],
  ])("are not looked for if the discovery document %s", async (_, document) => {
    issuer.respond = (path) => (path === "/keys" ? undefined : Response.json(document));
    await expect(jwts.keys.refresh()).rejects.toThrow("/.well-known/openid-configuration");
    expect(issuer.asked).toBe(0);
  });
});
