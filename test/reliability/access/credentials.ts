/** Every kind of credential for a garden, good and bad, and what it permits. */
import { issueToken, makeToken, type NewToken } from "../../../src/auth/opaque-token.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { makeSigningKey, type OpenIdIssuer, sign } from "../../openid-issuer.ts";

/**
 * `none`: no token was sent. `refused`: an invalid one was sent. `undecided`: it is signed by a key
 * that the service doesn't know and may not fetch yet.
 */
export type Standing = "none" | "refused" | "undecided" | "read" | "write";

export interface Credential {
  readonly name: string;
  readonly standing: Standing;
  /** The header; absent: it is not sent. */
  readonly authorization: string | undefined;
  /** The token after the scheme, if the header is well-formed. */
  readonly token: string | undefined;
}

export async function makeCredentials(
  storage: Storage,
  issuer: OpenIdIssuer,
  garden: string,
): Promise<Credential[]> {
  const opaque = await makeOpaqueTokens(storage, garden);
  const tokens: Record<string, readonly [Standing, string]> = {
    ...opaque,
    ...(await makeJwts(issuer, garden)),
  };
  const good = opaque["write token"][1];
  const texts: Record<string, readonly [Standing, string | undefined]> = {
    nothing: ["none", undefined],
    "an empty header": ["none", ""],
    "a scheme alone": ["none", "Bearer"],
    "a token without a scheme": ["none", good],
    "another scheme": ["none", `Basic ${good}`],
    "two tokens": ["refused", `Bearer ${good}, Bearer ${good}`],
    "a token and more": ["refused", `Bearer ${good} ${good}`],
    "a quoted token": ["refused", `Bearer "${good}"`],
  };
  return [
    ...Object.entries(texts).map(([name, [standing, authorization]]) => {
      return { name, standing, authorization, token: undefined };
    }),
    ...Object.entries(tokens).map(([name, [standing, token]]) => {
      return { name, standing, authorization: `Bearer ${token}`, token };
    }),
  ];
}

async function makeOpaqueTokens(storage: Storage, garden: string) {
  const issue = (wish: Partial<NewToken>) =>
    issueToken(storage, { user: "someone", garden, ...wish }, Date.now());
  const [write, read] = [await issue({}), await issue({ scope: "read" })];
  const expired = await issue({ expiresAtMs: Date.now() });
  const revoked = await issue({});
  await storage.revokeToken(revoked.record.id, Date.now());
  const other = write.token.endsWith("0") ? "1" : "0";
  return {
    "write token": ["write", write.token],
    "read token": ["read", read.token],
    "expired token": ["refused", expired.token],
    "revoked token": ["refused", revoked.token],
    "unknown token": ["refused", makeToken()],
    "token with a wrong checksum": ["refused", write.token.slice(0, -1) + other],
    "token in other letters": ["refused", write.token.toUpperCase()],
    "token cut short": ["refused", write.token.slice(0, -1)],
    "token's hash": ["refused", write.record.hash],
    "token's id": ["refused", write.record.id],
    garbage: ["refused", "garbage"],
    "very long garbage": ["refused", "very-long-garbage-".repeat(450)],
  } as const;
}

async function makeJwts(
  issuer: OpenIdIssuer,
  garden: string,
): Promise<Record<string, readonly [Standing, string]>> {
  const key = await issuer.makeKey();
  const withdrawn = await issuer.makeKey();
  issuer.published = issuer.published.filter(({ kid }) => kid !== withdrawn.kid);
  const claims = (others: Record<string, unknown> = {}) =>
    issuer.claims(Date.now(), {
      sub: garden,
      exp: Math.floor(Date.now() / 1_000) + 3_600,
      ...others,
    });
  const [header, payload] = (await sign(key, claims())).split(".");
  const [, , foreignSignature] = (await sign(key, claims({ sub: "eve" }))).split(".");
  return {
    "JWT to write": ["write", await sign(key, claims())],
    "JWT to read": ["read", await sign(key, claims({ scope: "read" }))],
    "expired JWT": ["refused", await sign(key, claims({ exp: 1 }))],
    "JWT by another issuer": ["refused", await sign(key, claims({ iss: "https://evil.test" }))],
    "JWT for another audience": ["refused", await sign(key, claims({ aud: "https://evil.test" }))],
    "JWT without a scope": ["refused", await sign(key, claims({ scope: undefined }))],
    "very long JWT": ["refused", await sign(key, claims({ padding: "x".repeat(9_000) }))],
    "JWT by an unknown key": ["undecided", await sign(await makeSigningKey(), claims())],
    "JWT by a withdrawn key": ["undecided", await sign(withdrawn, claims())],
    "JWT with another's signature": ["refused", `${header}.${payload}.${foreignSignature}`],
    "three words with dots": ["refused", "a.b.c"],
  };
}
