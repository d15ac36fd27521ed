/**
 * From the text of a JWT to the caller that its issuer vouches for. Remembers what was found good,
 * so that a hot token costs no check of a signature; it does not know where keys come from.
 */
import type { JWTHeaderParameters, JWTPayload, JWTVerifyGetKey } from "jose";
import { type Caller, isIdentity, type Scope } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { JwtIssuer } from "../domain/issuer.ts";
import { IssuerKeys } from "./issuer-keys.ts";

const tokenCharactersMax = 8_192;
/**
 * Of all tokens that are remembered together; beyond it, the one of longest ago is checked again.
 */
const knownCharactersMax = 16 * 1024 * 1024;

interface KnownToken {
  readonly caller: Caller;
  readonly expiresAtMs: number;
}

export class JsonWebTokens {
  readonly #issuer: JwtIssuer;
  readonly #nowMs: () => number;
  readonly #keys: IssuerKeys;
  readonly #known = new Map<string, KnownToken>();
  #knownCharacters = 0;
  /** The state of the keys that all known tokens were checked with. */
  #changes = 0;

  constructor(issuer: JwtIssuer, nowMs: () => number) {
    this.#issuer = issuer;
    this.#nowMs = nowMs;
    this.#keys = new IssuerKeys(issuer, nowMs);
  }

  /** Asks the issuer for its keys. A token whose key is gone is forgotten with the next call. */
  refreshKeys(): Promise<void> {
    return this.#keys.refresh();
  }

  /** The caller of a token that was checked before and still counts, at once. */
  recall(token: string, nowMs: number): Caller | undefined {
    const known = this.#known.get(token);
    if (known === undefined || !this.#keys.areTrusted(nowMs)) return undefined;
    if (this.#keys.changes !== this.#changes) {
      this.#forgetAll();
      return undefined;
    }
    if (nowMs < known.expiresAtMs) return known.caller;
    this.#forget(token);
    return undefined;
  }

  /**
   * Absent if the token is not good, whatever the reason, which is found only after its signature
   * was checked wherever there is one to check. Fails with `unavailable` if that cannot be decided.
   */
  async check(token: string, traceparent?: string): Promise<Caller | undefined> {
    const { jwtVerify } = await import("jose");
    const { issuer, audiences, algorithms, clockSkewSeconds } = this.#issuer;
    const nowMs = this.#nowMs();
    // Keys may change while one of them is read and a signature is checked with it: then the caller
    // is used, but not kept.
    let changes = -1;
    const findKey: JWTVerifyGetKey = async (header, parts) => {
      const found = await this.#keys.find(header, parts, traceparent);
      changes = found.changes;
      return found.key;
    };
    try {
      const { payload, protectedHeader } = await jwtVerify(token, findKey, {
        issuer,
        audience: [...audiences],
        algorithms: [...algorithms],
        clockTolerance: clockSkewSeconds,
        currentDate: new Date(nowMs),
        requiredClaims: ["exp", "sub"],
      });
      const caller = this.#callerOf(payload, protectedHeader, nowMs);
      const expiresAtMs = (Number(payload.exp) + clockSkewSeconds) * 1_000;
      if (caller && changes === this.#keys.changes) this.#keep(token, { caller, expiresAtMs });
      return caller;
    } catch (error) {
      if (error instanceof PlantStoreError) throw error;
      return undefined;
    }
  }

  #callerOf(claims: JWTPayload, header: JWTHeaderParameters, nowMs: number): Caller | undefined {
    const { issuer, gardenClaim, clockSkewSeconds } = this.#issuer;
    const { sub: user, iat, cnf, [gardenClaim]: garden } = claims;
    const scope = scopeOf(claims.scope);
    if (!isAccessTokenType(header.typ) || scope === undefined) return undefined;
    if (iat !== undefined && iat > nowMs / 1_000 + clockSkewSeconds) return undefined;
    // It is bound to a key whose possession a bearer does not prove.
    if (cnf !== undefined) return undefined;
    if (typeof user !== "string" || !isIdentity(user)) return undefined;
    if (typeof garden !== "string" || !isIdentity(garden)) return undefined;
    return { credential: `${issuer} ${user}`, user, garden, scope };
  }

  #keep(token: string, known: KnownToken): void {
    if (this.#changes !== this.#keys.changes) this.#forgetAll();
    this.#forget(token);
    this.#known.set(token, known);
    this.#knownCharacters += token.length;
    // Maps keep the order of insertion, so the first key is the oldest.
    for (const oldest of this.#known.keys()) {
      if (this.#knownCharacters <= knownCharactersMax) break;
      this.#forget(oldest);
    }
  }

  #forget(token: string): void {
    if (this.#known.delete(token)) this.#knownCharacters -= token.length;
  }

  #forgetAll(): void {
    this.#known.clear();
    this.#knownCharacters = 0;
    this.#changes = this.#keys.changes;
  }
}

/** Three parts, as no opaque token has; the last one may be empty, and is then refused. */
export function isJwtForm(text: string): boolean {
  return text.length <= tokenCharactersMax && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

/** Other kinds of JWT by the same issuer, for logging out or for security events, open nothing. */
function isAccessTokenType(type: string | undefined): boolean {
  return type === undefined || /^(?:application\/)?(?:at\+)?jwt$/i.test(type);
}

/** An ID token has no scope, so it opens nothing either. */
function scopeOf(claim: unknown): Scope | undefined {
  const names = typeof claim === "string" ? claim.split(" ") : [];
  if (names.includes("write")) return "write";
  return names.includes("read") ? "read" : undefined;
}
