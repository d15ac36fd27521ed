/** Who a JWT stands for, and which are refused. The issuer is real, the clock is not. */
import { afterAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { createHmac } from "node:crypto";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { openJwtFixture } from "../../test/jwt-fixture.ts";
import { audience, encodePart, makeSigningKey, sign } from "../../test/openid-issuer.ts";

const skewMs = 30_000;

const { issuer, key, clock, trust, good, ask, askWith, reset, stop } = await openJwtFixture();

beforeEach(reset);
afterAll(stop);

describe("a good token", () => {
  test("stands for its subject, in the subject's own garden", async () => {
    const credential = `${issuer.url} alice`;
    const expiresAtMs = clock.nowMs + 60_000;
    const alice = { credential, user: "alice", garden: "alice", scope: "write", expiresAtMs };
    expect(await askWith({})).toEqual(alice);
    // Its own id is only for the log, so that no line break gets there.
    expect(await askWith({ jti: "renewed" })).toEqual({ ...alice, tokenId: "renewed" });
    expect(await askWith({ jti: "a\nb" })).toEqual(alice);
  });

  test("opens the garden that the configured claim names, and needs that claim", async () => {
    const gardenClaim = "https://plants.test/garden";
    trust({ gardenClaim });
    const team = { user: "alice", garden: "team", scope: "write" };
    expect(await askWith({ [gardenClaim]: "team" })).toMatchObject(team);
    expect(await askWith({})).toBe("unauthenticated");
    expect(await askWith({ [gardenClaim]: 7 })).toBe("unauthenticated");
    expect(await askWith({ [gardenClaim]: "a\nb" })).toBe("unauthenticated");
    expect(await askWith({ [gardenClaim]: "team", sub: "a\nb" })).toBe("unauthenticated");
  });

  test.each(["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"])(
    "may be signed with %s",
    async (algorithm) => {
      const other = await issuer.makeKey(algorithm);
      trust({});
      expect(await ask(await sign(other, good()))).toMatchObject({ user: "alice" });
    },
  );

  test("may be for several audiences, of which one is meant", async () => {
    expect(await askWith({ aud: ["other", audience] })).toMatchObject({ user: "alice" });
    trust({ audiences: ["second", audience] });
    expect(await askWith({ aud: "second" })).toMatchObject({ user: "alice" });
  });

  test.each([undefined, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"])(
    "may be of the type %p",
    async (typ) => expect(await askWith({}, { typ })).toMatchObject({ user: "alice" }),
  );

  test("may leave out which key it is, where only one fits", async () => {
    expect(await askWith({}, { kid: undefined })).toMatchObject({ user: "alice" });
  });
});

describe("the scope", () => {
  test.each([
    ["read", "read"],
    ["write", "write"],
    ["read write", "write"],
    ["openid profile read", "read"],
    [["openid", "write"], "write"],
    [["read"], "read"],
  ])("%p gives %s", async (scope, expected) =>
    expect(await askWith({ scope })).toMatchObject({ scope: expected }),
  );

  test.each<[unknown]>([
    [undefined],
    [""],
    ["openid"],
    ["READ"],
    ["readwrite"],
    ["read,write"],
    [["read write"]],
    [{ write: true }],
  ])("%p is valid and permits nothing", async (scope) =>
    expect(await askWith({ scope })).toMatchObject({ user: "alice", scope: undefined }),
  );
});

describe("time", () => {
  test("ends a token at its expiry and the clock skew, to the second", async () => {
    const exp = clock.nowMs / 1_000;
    const token = await sign(key, good({ exp }));
    clock.nowMs += skewMs - 1;
    expect(await ask(token)).toMatchObject({ user: "alice" });
    clock.nowMs += 1;
    expect(await ask(token)).toBe("unauthenticated");
    trust({});
    expect(await ask(token)).toBe("unauthenticated");
    clock.nowMs -= 1_000;
    expect(await ask(token)).toMatchObject({ user: "alice" });
  });

  test("refuses a token whose nbf lies ahead by more than the skew", async () => {
    const nbf = clock.nowMs / 1_000 + skewMs / 1_000;
    expect(await askWith({ nbf })).toMatchObject({ user: "alice" });
    expect(await askWith({ nbf: nbf + 1 })).toBe("unauthenticated");
  });
});

describe("a flood of forged tokens", () => {
  test("is checked a few at a time, and those verified before have places of their own", async () => {
    const jwts = trust({});
    const good = await sign(key, issuer.claims(clock.nowMs));
    expect(await ask(good)).toMatchObject({ user: "alice" });
    clock.nowMs += 15_000;
    expect(jwts.findCached(good)).toBeUndefined();
    expect(jwts.findGarden(good)).toBe("alice");

    const held = Promise.withResolvers<void>();
    const { verify } = crypto.subtle;
    const checking = spyOn(crypto.subtle, "verify").mockImplementation(async (...args) => {
      if (checking.mock.calls.length <= 4) await held.promise;
      return verify.apply(crypto.subtle, args);
    });
    const forger = { ...(await makeSigningKey()), kid: key.kid };
    const forged = Array.from({ length: 20 }, async (_, index) =>
      ask(await sign(forger, issuer.claims(clock.nowMs, { jti: String(index) }))),
    );
    await waitFor(() => checking.mock.calls.length === 4 || undefined);
    expect(await ask(good)).toMatchObject({ user: "alice" });
    expect(checking).toHaveBeenCalledTimes(5);
    held.resolve();
    await Promise.all(forged);
    checking.mockRestore();
  });
});

describe("refuses a token", () => {
  test.each<[name: string, others: Record<string, unknown>]>([
    ["without an issuer", { iss: undefined }],
    ["for an audience that begins alike", { aud: `${audience}.evil.test` }],
    ["without an audience", { aud: undefined }],
    ["without an expiry", { exp: undefined }],
    ["whose expiry is text", { exp: "9999999999" }],
    ["without a subject", { sub: undefined }],
    ["whose subject is empty", { sub: "" }],
    ["whose subject is a number", { sub: 7 }],
    ["whose subject holds a control character", { sub: "alice\u0000" }],
    ["that is bound to a key of the sender's", { cnf: { jkt: "x" } }],
  ])("%s", async (_, others) => expect(await askWith(others)).toBe("unauthenticated"));

  test.each(["logout+jwt", "dpop+jwt", "id_token", "at+jwt2"])("of the type %s", async (typ) =>
    expect(await askWith({}, { typ })).toBe("unauthenticated"),
  );
});

describe("refuses the attack", () => {
  const forged = (header: object, claims: object, signature = "") =>
    `${encodePart(header)}.${encodePart(claims)}.${signature}`;

  test.each(["none", "nOnE", ""])("of no signature, as %p", async (alg) => {
    expect(await ask(forged({ alg }, good()))).toBe("unauthenticated");
    expect(await ask(forged({ alg, kid: key.kid }, good(), "AAAA"))).toBe("unauthenticated");
  });

  test("of a public key used as a shared secret", async () => {
    const rsa = await issuer.makeKey("RS256");
    const exported = await crypto.subtle.exportKey(
      "spki",
      await crypto.subtle.importKey(
        "jwk",
        rsa.publicJwk as JsonWebKey,
        { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
        true,
        ["verify"],
      ),
    );
    const base64 = Buffer.from(exported).toString("base64");
    const pem = `-----BEGIN PUBLIC KEY-----\n${base64}\n-----END PUBLIC KEY-----\n`;
    for (const secret of [pem, Buffer.from(exported), JSON.stringify(rsa.publicJwk)]) {
      const text = `${encodePart({ alg: "HS256", kid: rsa.kid })}.${encodePart(good())}`;
      const signature = createHmac("sha256", secret).update(text).digest("base64url");
      expect(await ask(`${text}.${signature}`)).toBe("unauthenticated");
    }
  });

  test("of a key that the token brings along or points to", async () => {
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
    for (const kid of [own.kid, key.kid, undefined, url]) {
      for (const header of [
        { jwk: own.publicJwk },
        { jku: url },
        { x5u: url },
        { x5c: ["MIIB"] },
      ]) {
        trust({});
        expect(await ask(await sign(own, good(), { ...header, kid }))).toBe("unauthenticated");
      }
    }
    expect(visits).toBe(0);
  });
});
