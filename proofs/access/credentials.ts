/** Every kind of credential for a garden, good and bad, and what it permits. */
import { issueToken, makeToken, type NewToken } from "../../src/auth/opaque-token.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { type OpenIdIssuer, sign } from "../../test/openid-issuer.ts";

/** `none`: no token was sent. `refused`: an invalid one was sent. */
export type Standing = "none" | "refused" | "read" | "write";

export interface Credential {
  readonly name: string;
  readonly standing: Standing;
  readonly token: string;
  /** The header. */
  readonly authorization: string;
}

export async function makeCredentials(
  storage: Storage,
  issuer: OpenIdIssuer,
  garden: string,
): Promise<Credential[]> {
  const issue = (wish: Partial<NewToken> = {}) =>
    issueToken(storage, { user: "someone", garden, ...wish }, Date.now());
  const [write, read, revoked] = [await issue(), await issue({ scope: "read" }), await issue()];
  const expired = await issue({ expiresAtMs: Date.now() });
  await storage.revokeToken(revoked.record.id, Date.now());
  const other = write.token.endsWith("0") ? "1" : "0";

  const key = await issuer.makeKey();
  const withdrawn = await issuer.makeKey();
  issuer.published = issuer.published.filter(({ kid }) => kid !== withdrawn.kid);
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const jwt = (others: Record<string, unknown> = {}, by = key) =>
    sign(by, issuer.claims(Date.now(), { sub: garden, exp, ...others }));
  const [header, payload] = (await jwt()).split(".");
  const [, , foreignSignature] = (await jwt({ sub: "eve" })).split(".");

  const credentials: Record<string, readonly [Standing, token: string, header?: string]> = {
    nothing: ["none", "", ""],
    "a token without a scheme": ["none", write.token, write.token],
    "another scheme": ["none", write.token, `Basic ${write.token}`],
    "two tokens": ["refused", write.token, `Bearer ${write.token}, Bearer ${write.token}`],
    "write token": ["write", write.token],
    "read token": ["read", read.token],
    "expired token": ["refused", expired.token],
    "revoked token": ["refused", revoked.token],
    "unknown token": ["refused", makeToken()],
    "token with a wrong checksum": ["refused", write.token.slice(0, -1) + other],
    "token's hash": ["refused", write.record.hash],
    "token's id": ["refused", write.record.id],
    "very long garbage": ["refused", "very-long-garbage-".repeat(450)],
    "JWT to write": ["write", await jwt()],
    "JWT to read": ["read", await jwt({ scope: "read" })],
    "expired JWT": ["refused", await jwt({ exp: 1 })],
    "JWT by another issuer": ["refused", await jwt({ iss: "https://evil.test" })],
    "JWT by a withdrawn key": ["refused", await jwt({}, withdrawn)],
    "JWT with another's signature": ["refused", `${header}.${payload}.${foreignSignature}`],
  };
  return Object.entries(credentials).map(
    ([name, [standing, token, authorization = `Bearer ${token}`]]) => {
      return { name, standing, token, authorization };
    },
  );
}
