/**
 * From a JWT to its caller. `jose` fetches the issuer's keys and checks signatures and standard
 * claims; what else we require of a token is here.
 */
import type {
  createRemoteJWKSet,
  FetchImplementation,
  JWTHeaderParameters,
  JWTPayload,
  JWTVerifyGetKey,
} from "jose";
import { type Caller, isIdentity, type Scope } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";

export interface JwtIssuer {
  /** Exactly as in the claim `iss`; also where its discovery document is. */
  readonly issuer: string;
  /** A token must be meant for one of them. */
  readonly audiences: readonly string[];
  /** Where its keys are. Absent: its discovery document says so. */
  readonly keysUrl: string | undefined;
  readonly algorithms: readonly string[];
  /** The claim that names the garden. */
  readonly gardenClaim: string;
  readonly clockSkewSeconds: number;
}

/** Tokens with unknown keys make us ask the issuer once in this time, not more often. */
const cooldownMs = 10_000;
/** An issuer that fails is asked again after this time. */
const retryMs = 1_000;
/** How long keys count when the issuer can't confirm them. */
const keysMaxAgeMs = 3_600_000;
const fetchTimeoutMs = 5_000;

const tokenCharactersMax = 8_192;
/**
 * A verified token is remembered, because checking a signature takes 0.2 ms and more; but briefly,
 * so that a key that the issuer withdrew stops counting.
 */
const rememberMs = 15_000;
const rememberedMax = 4_096;

interface VerifiedToken {
  readonly caller: Caller;
  readonly untilMs: number;
}

type KeySet = ReturnType<typeof createRemoteJWKSet>;

export class JwtVerifier {
  readonly #issuer: JwtIssuer;
  readonly #verified = new Map<string, VerifiedToken>();
  #keySet: Promise<KeySet> | undefined;

  constructor(issuer: JwtIssuer) {
    this.#issuer = issuer;
  }

  /** Fetches the issuer's keys. If it fails, the known ones count on until they are too old. */
  async refreshKeys(): Promise<void> {
    await (await this.#keys()).reload();
  }

  /** The caller of a token that was verified in the last 15 seconds. */
  findCached(token: string): Caller | undefined {
    const known = this.#verified.get(token);
    if (known !== undefined && Date.now() < known.untilMs) return known.caller;
    if (known !== undefined) this.#verified.delete(token);
    return undefined;
  }

  /**
   * Absent if the token is not good, for whatever reason. Throws `unavailable` if the issuer's keys
   * are needed and can't be fetched.
   */
  async verify(token: string): Promise<Caller | undefined> {
    const { issuer, audiences, algorithms, clockSkewSeconds } = this.#issuer;
    const { jwtVerify } = await import("jose");
    const keys = await this.#keys();
    const getKey: JWTVerifyGetKey = (header, parts) =>
      keys(header, parts).catch((error) => {
        throw keys.fresh ? error : unreachable();
      });
    try {
      const { payload, protectedHeader } = await jwtVerify(token, getKey, {
        issuer,
        audience: [...audiences],
        algorithms: [...algorithms],
        clockTolerance: clockSkewSeconds,
        requiredClaims: ["exp", "sub"],
      });
      const caller = this.#callerOf(payload, protectedHeader);
      if (caller) this.#remember(token, caller, (Number(payload.exp) + clockSkewSeconds) * 1_000);
      return caller;
    } catch (error) {
      if (error instanceof PlantStoreError) throw error;
      return undefined;
    }
  }

  #callerOf(claims: JWTPayload, header: JWTHeaderParameters): Caller | undefined {
    const { issuer, gardenClaim, clockSkewSeconds } = this.#issuer;
    const { sub: user, iat, cnf, [gardenClaim]: garden } = claims;
    const scope = scopeOf(claims.scope);
    if (!isAccessTokenType(header.typ) || scope === undefined) return undefined;
    if (iat !== undefined && iat > Date.now() / 1_000 + clockSkewSeconds) return undefined;
    // It is bound to a key that a bearer doesn't prove to hold.
    if (cnf !== undefined) return undefined;
    if (typeof user !== "string" || !isIdentity(user)) return undefined;
    if (typeof garden !== "string" || !isIdentity(garden)) return undefined;
    return { credential: `${issuer} ${user}`, user, garden, scope };
  }

  #remember(token: string, caller: Caller, expiresAtMs: number): void {
    makeRoom(this.#verified, rememberedMax);
    const untilMs = Math.min(expiresAtMs, Date.now() + rememberMs);
    this.#verified.set(token, { caller, untilMs });
  }

  #keys(): Promise<KeySet> {
    this.#keySet ??= openKeySet(this.#issuer);
    return this.#keySet;
  }
}

/** Loads `jose` only where an issuer is configured: it takes 60 ms and more. */
async function openKeySet({ issuer, keysUrl }: JwtIssuer): Promise<KeySet> {
  const { createRemoteJWKSet, customFetch } = await import("jose");
  let fetchedAtMs = Number.NEGATIVE_INFINITY;
  const fetchKeys: FetchImplementation = async (_, init) => {
    // jose's cooldown starts with a success, so it wouldn't spare an issuer that is down.
    if (Math.abs(Date.now() - fetchedAtMs) < retryMs) throw new Error("Asked a moment ago.");
    fetchedAtMs = Date.now();
    const url = keysUrl ?? (await discoverKeysUrl(issuer, init));
    return fetch(url, { ...init, redirect: "error" });
  };
  return createRemoteJWKSet(new URL(keysUrl ?? issuer), {
    timeoutDuration: fetchTimeoutMs,
    cooldownDuration: cooldownMs,
    cacheMaxAge: keysMaxAgeMs,
    [customFetch]: fetchKeys,
  });
}

async function discoverKeysUrl(issuer: string, init: RequestInit): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const response = await fetch(url, { ...init, redirect: "error" });
  if (!response.ok) throw new Error(`${url} responded with ${response.status}.`);
  const document = (await response.json()) as Record<string, unknown>;
  // Otherwise one issuer's document could stand in for another's.
  if (document.issuer !== issuer) throw new Error(`${url} is for another issuer.`);
  const keysUrl = URL.parse(String(document.jwks_uri));
  // Nobody outside may send the service to an address on this machine.
  if (keysUrl?.protocol === "https:" || keysUrl?.origin === new URL(issuer).origin) {
    return keysUrl.href;
  }
  throw new Error(`${url} names no jwks_uri that can be trusted.`);
}

function unreachable(): PlantStoreError {
  const message = "The issuer of this token can't be asked for its keys. Try again later.";
  return new PlantStoreError("unavailable", message);
}

/** Drops the oldest entry: maps and sets keep the order of insertion. */
export function makeRoom(
  collection: { size: number; keys(): Iterator<string>; delete(key: string): boolean },
  max: number,
): void {
  if (collection.size < max) return;
  const oldest = collection.keys().next();
  if (!oldest.done) collection.delete(oldest.value);
}

/** Three parts, which no opaque token has. */
export function isJwtForm(text: string): boolean {
  return text.length <= tokenCharactersMax && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

/** Other JWTs of the same issuer, such as for logging out, open nothing. */
function isAccessTokenType(type: string | undefined): boolean {
  return type === undefined || /^(?:application\/)?(?:at\+)?jwt$/i.test(type);
}

/** An ID token has no scope, so it opens nothing either. */
function scopeOf(claim: unknown): Scope | undefined {
  const names = typeof claim === "string" ? claim.split(" ") : [];
  if (names.includes("write")) return "write";
  return names.includes("read") ? "read" : undefined;
}
