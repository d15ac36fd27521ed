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

  test("may be for several audiences, of several types, and leave out which key it is", async () => {
    trust({ audiences: ["second", audience] });
    for (const aud of [["other", audience], "second"]) {
      expect(await askWith({ aud })).toMatchObject({ user: "alice" });
    }
    for (const typ of [undefined, "JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"]) {
      expect(await askWith({}, { typ, kid: undefined })).toMatchObject({ user: "alice" });
    }
  });
});

describe("the scope", () => {
  const nothing = [undefined, "", "openid", "READ", "readwrite", "read,write", ["read write"]];

  test.each<[unknown, string | undefined]>([
    ["read", "read"],
    ["read write", "write"],
    ["openid profile read", "read"],
    [["openid", "write"], "write"],
    [{ write: true }, undefined],
    ...nothing.map((scope): [unknown, undefined] => [scope, undefined]),
  ])("%p permits to %s", async (scope, expected) =>
    expect(await askWith({ scope })).toMatchObject({ user: "alice", scope: expected }),
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
  test.each<Record<string, unknown>>([
    ...["iss", "aud", "exp", "sub"].map((claim) => ({ [claim]: undefined })),
    { aud: `${audience}.evil.test` },
    { exp: "9999999999" },
    ...["", 7, "alice\u0000"].map((sub) => ({ sub })),
    // Bound to a key of the sender's.
    { cnf: { jkt: "x" } },
  ])("with %p", async (others) => expect(await askWith(others)).toBe("unauthenticated"));

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
    const text = `${encodePart({ alg: "HS256", kid: key.kid })}.${encodePart(good())}`;
    const hmac = createHmac("sha256", JSON.stringify(key.publicJwk)).update(text);
    expect(await ask(`${text}.${hmac.digest("base64url")}`)).toBe("unauthenticated");
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
    const brought = { jwk: own.publicJwk, jku: url, x5u: url, x5c: ["MIIB"] };
    for (const kid of [own.kid, key.kid, undefined, url]) {
      trust({});
      expect(await ask(await sign(own, good(), { ...brought, kid }))).toBe("unauthenticated");
    }
    expect(visits).toBe(0);
  });
});
