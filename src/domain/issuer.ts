/**
 * An issuer of JWTs whose word the service takes for who calls, and what it asks of such a token.
 */

/** Signed with a private key that only the issuer has: never `none`, never a shared secret. */
export const jwtAlgorithms = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"];

export interface JwtIssuer {
  /** Exactly as in the claim `iss`; also where its discovery document lies. */
  readonly issuer: string;
  /** A token must be meant for one of them. */
  readonly audiences: readonly string[];
  /** Where its keys are, if its discovery document is not to be asked. */
  readonly keysUrl: string | undefined;
  readonly algorithms: readonly string[];
  /** The claim that names the garden. */
  readonly gardenClaim: string;
  readonly clockSkewSeconds: number;
}

/** Whether what comes from an address comes from whom it names: over TLS, or from this machine. */
export function isTrustworthyAddress(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.username !== "" || url.password !== "" || /[#\s]/.test(text)) return false;
  const isLocal = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  return url.protocol === "https:" || (url.protocol === "http:" && isLocal);
}
