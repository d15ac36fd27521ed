/** Known attacks on JWTs, each against a real issuer. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { openInquiry } from "../../test/openid-inquiry.ts";
import { encodePart, makeSigningKey, sign, signParts } from "../../test/openid-issuer.ts";

const { issuer, key, trust, good, ask, askWith, reset, stop } = await openInquiry();

beforeEach(reset);
afterAll(stop);

describe("refuses the attack", () => {
  const forged = (header: object, claims: object, signature = "") =>
    `${encodePart(header)}.${encodePart(claims)}.${signature}`;

  test.each(["none", "None", "NONE", "nOnE", ""])("of no signature, as %p", async (alg) => {
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

  test("of a shared secret among the issuer's keys", async () => {
    const secret = Buffer.alloc(32, 7);
    issuer.published.push({ kty: "oct", kid: "shared", k: secret.toString("base64url") });
    const text = `${encodePart({ alg: "HS256", kid: "shared" })}.${encodePart(good())}`;
    const signature = createHmac("sha256", secret).update(text).digest("base64url");
    expect(await ask(`${text}.${signature}`)).toBe("unauthenticated");
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
        expect(await ask(await sign(own, good(), { ...header, kid }))).toBe("unauthenticated");
      }
    }
    expect(visits).toBe(0);
  });

  test.each<[unknown]>([
    ["../../../../dev/null"],
    ["' OR 1=1 --"],
    ["__proto__"],
    ["http://127.0.0.1:1/"],
    [""],
    [{ $ne: 1 }],
    [["key-1"]],
    [7],
    [null],
  ])("of a key's name such as %p", async (kid) => {
    const own = await makeSigningKey();
    expect(await ask(await sign(own, good(), { kid }))).toBe("unauthenticated");
  });

  test("of an extension that must be understood and is not", async () => {
    const header = { crit: ["plants"], plants: true };
    const payload = JSON.stringify(good());
    expect(await ask(await signParts(key, {}, payload))).toMatchObject({ user: "alice" });
    expect(await ask(await signParts(key, header, payload))).toBe("unauthenticated");
  });

  test("of a payload that is not the one that was signed, or a signature of another", async () => {
    const [header, payload] = (await sign(key, good())).split(".");
    const [otherHeader, otherPayload, other] = (await sign(key, good({ sub: "bob" }))).split(".");
    expect(await ask(`${header}.${payload}.${other}`)).toBe("unauthenticated");
    expect(await ask(`${otherHeader}.${otherPayload}.${other}`)).toMatchObject({ user: "bob" });
  });

  test.each(["ES256", "ES384", "ES512"])(
    "of an empty or zero signature with %s",
    async (algorithm) => {
      const curve = await issuer.makeKey(algorithm);
      trust({ algorithms: [algorithm] });
      const text = `${encodePart({ alg: algorithm, kid: curve.kid })}.${encodePart(good())}`;
      for (const bytes of [0, 64, 96, 132]) {
        const zeros = Buffer.alloc(bytes).toString("base64url");
        expect(await ask(`${text}.${zeros}`)).toBe("unauthenticated");
      }
    },
  );

  test("of one algorithm's key used with another", async () => {
    const other = await makeSigningKey("EdDSA");
    const token = await sign(other, good(), { kid: key.kid });
    expect(await ask(token)).toBe("unauthenticated");
  });

  test("of claims or headers that are no JSON object", async () => {
    for (const payload of ["", "null", "[]", '"x"', "{", "7", '{"sub":"alice"}x', "\xff\xfe"]) {
      expect(await ask(await signParts(key, {}, payload))).toBe("unauthenticated");
      expect(await ask(`${encodePart(payload)}.${encodePart(good())}.x`)).toBe("unauthenticated");
    }
  });

  test("of a claim that stands there twice: the last one counts, as RFC 7519 has it", async () => {
    const body = JSON.stringify(good()).replace("{", '{"aud":"https://other.test","sub":"bob",');
    const twisted = `${JSON.stringify(good()).slice(0, -1)},"aud":"https://other.test"}`;
    const alice = { user: "alice", garden: "alice", scope: "write" };
    expect(await ask(await signParts(key, {}, body))).toMatchObject(alice);
    expect(await ask(await signParts(key, {}, twisted))).toBe("unauthenticated");
  });

  test("of size: up to 8,192 characters are looked at, and not one more", async () => {
    const lengthOf = async (padding: number) =>
      (await sign(key, good({ padding: "x".repeat(padding) }))).length;
    let padding = 5_500;
    while ((await lengthOf(padding + 1)) <= 8_192) padding++;
    expect(await askWith({ padding: "x".repeat(padding) })).toMatchObject({ user: "alice" });
    expect(await askWith({ padding: "x".repeat(padding + 2) })).toBe("unauthenticated");
  });
});
