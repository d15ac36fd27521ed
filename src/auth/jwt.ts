/**
 * From a JWT to its caller. `jose` checks signatures and standard claims, and finds a token's key;
 * what else we require of a token, and how long the issuer's keys count, is here.
 */
import type {
  CryptoKey,
  createLocalJWKSet,
  JSONWebKeySet,
  JWSHeaderParameters,
  JWTHeaderParameters,
  JWTPayload,
} from "jose";
import { type Caller, isIdentity, type Scope } from "../domain/caller.ts";
import { PlantStoreError, refusedToken } from "../domain/errors.ts";
import { sharedQueue } from "../limits/fair-queue.ts";
import { Semaphore } from "../limits/semaphore.ts";
import { BoundedMap } from "../shared/bounded-map.ts";
import { Clocks, type Moment } from "../shared/clocks.ts";

export interface JwtIssuer {
  /** The exact claim `iss`, and the base of the discovery document's URL. */
  readonly issuer: string;
  /** Where its keys are. Absent: its discovery document says so. */
  readonly keysUrl: string | undefined;
  /** A token must be meant for one of them. */
  readonly audiences: readonly string[];
  /** The claim that names the garden. */
  readonly gardenClaim: string;
  /** The claim that lists scopes, and the names that let a caller read, and write. */
  readonly scopeClaim: string;
  readonly readScope: string;
  readonly writeScope: string;
}

/** Signed with a private key that only the issuer has: never `none`, never a shared secret. */
const algorithms = ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "EdDSA"];
/** How far the issuer's clock may be off. */
const clockSkewSeconds = 30;
const tokenCharactersMax = 8_192;
/**
 * A verified token is remembered, because checking a signature takes 0.2 ms and more; but briefly,
 * so that a key that the issuer withdrew stops counting.
 */
const verifiedMs = 15_000;
const verifiedMax = 4_096;
/** How many signatures are checked at the same time, in all and for each queue. */
const checksMax = 8;
const queueChecksMax = 4;
/** The latest time that a date can show. */
const latestMs = 8.64e15;
/** Each thread asks the issuer at most this often, whatever tokens arrive. */
const cooldownMs = 10_000;
const fetchTimeoutMs = 5_000;
/** How long keys count when the issuer can't confirm them. */
const keysMaxAgeMs = 3_600_000;
/** Where tokens wait that weren't verified before. */
const unknownTokens = sharedQueue("token");

interface VerifiedToken {
  readonly caller: Caller;
  readonly verifiedAt: Moment;
  /** As it says itself. */
  readonly expiresAtMs: number;
}

/** What is wrong with a token, by `jose`'s error code. Errors about a claim name the claim. */
const tokenErrors: Readonly<Record<string, string>> = {
  ERR_JOSE_ALG_NOT_ALLOWED: "alg",
  ERR_JOSE_NOT_SUPPORTED: "alg",
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "signature",
};

export class JwtVerifier {
  readonly keys: IssuerKeys;
  readonly #verified = new BoundedMap<string, VerifiedToken>(verifiedMax);
  readonly #checks = new Semaphore(checksMax, queueChecksMax);

  constructor(
    private readonly issuer: JwtIssuer,
    private readonly clocks = new Clocks(),
  ) {
    this.keys = new IssuerKeys(issuer, clocks);
  }

  /** The caller of a token that was verified in the last 15 seconds. */
  findCached(token: string): Caller | undefined {
    const known = this.#verified.get(token);
    if (known === undefined || this.clocks.wallMs() >= known.expiresAtMs) return undefined;
    return this.clocks.msSince(known.verifiedAt) < verifiedMs ? known.caller : undefined;
  }

  /** The garden of a token that was verified before, even if it must be verified again. */
  findGarden(token: string): string | undefined {
    return this.#verified.get(token)?.caller.garden;
  }

  /**
   * Throws `unauthenticated` if the token is not good, and `unavailable` if the issuer's keys are
   * needed and can't be fetched, or too many tokens wait.
   */
  async verify(token: string): Promise<Caller> {
    if (token.length > tokenCharactersMax) throw refusedToken("length");
    const { base64url, decodeJwt, decodeProtectedHeader } = await import("jose");
    try {
      const header = decodeProtectedHeader(token);
      // No key would make these valid, and the log names the reason.
      if (!algorithms.includes(header.alg ?? "")) throw refusedToken("alg");
      if (decodeJwt(token).iss !== this.issuer.issuer) throw refusedToken("iss");
      const signature = token.slice(token.lastIndexOf(".") + 1);
      // Its last character has unused bits: one token could fill the cache in many spellings.
      if (base64url.encode(base64url.decode(signature)) !== signature)
        throw refusedToken("signature");
      const key = await this.keys.find(header);
      // Checking many signatures at once would hold up everybody else.
      return await this.#checks.run(
        this.findGarden(token) ?? unknownTokens,
        async () => this.findCached(token) ?? (await this.#check(token, key)),
      );
    } catch (error) {
      if (error instanceof PlantStoreError) throw error;
      const { claim, code } = error as { claim?: string; code?: string };
      throw refusedToken(claim ?? tokenErrors[code ?? ""] ?? "malformed");
    }
  }

  async #check(token: string, key: CryptoKey): Promise<Caller> {
    const { issuer, audiences } = this.issuer;
    const { jwtVerify } = await import("jose");
    const { payload, protectedHeader } = await jwtVerify(token, key, {
      issuer,
      audience: [...audiences],
      algorithms,
      clockTolerance: clockSkewSeconds,
      currentDate: new Date(this.clocks.wallMs()),
      requiredClaims: ["exp", "sub"],
    });
    const caller = this.#callerOf(payload, protectedHeader);
    this.#remember(token, caller, (Number(payload.exp) + clockSkewSeconds) * 1_000);
    return caller;
  }

  #callerOf(claims: JWTPayload, header: JWTHeaderParameters): Caller {
    const { issuer, gardenClaim } = this.issuer;
    const { sub: user, exp, jti, cnf, [gardenClaim]: garden } = claims;
    if (!isAccessTokenType(header.typ)) throw refusedToken("typ");
    // The token is bound to a key, and a bearer doesn't prove that they have it.
    if (cnf !== undefined) throw refusedToken("cnf");
    if (typeof user !== "string" || !isIdentity(user)) throw refusedToken("sub");
    if (typeof garden !== "string" || !isIdentity(garden)) throw refusedToken(gardenClaim);
    const expiresAtMs = Math.min(Number(exp) * 1_000, latestMs);
    const scope = this.#scopeOf(claims);
    const tokenId = typeof jti === "string" && isIdentity(jti) ? jti : undefined;
    return { credential: `${issuer} ${user}`, tokenId, user, garden, scope, expiresAtMs };
  }

  /** Absent for a token that is valid but may do nothing here, such as an ID token. */
  #scopeOf(claims: JWTPayload): Scope | undefined {
    const { scopeClaim, readScope, writeScope } = this.issuer;
    const claim = claims[scopeClaim];
    const names = typeof claim === "string" ? claim.split(" ") : claim;
    if (!Array.isArray(names)) return undefined;
    if (names.includes(writeScope)) return "write";
    return names.includes(readScope) ? "read" : undefined;
  }

  #remember(token: string, caller: Caller, expiresAtMs: number): void {
    // So that it counts as the newest.
    this.#verified.delete(token);
    this.#verified.set(token, { caller, verifiedAt: this.clocks.now(), expiresAtMs });
  }
}

/** Three parts, which no opaque token has. */
export function isJwtForm(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

/** The issuer's other JWTs, such as logout tokens, give no access. */
function isAccessTokenType(type: string | undefined): boolean {
  return type === undefined || /^(?:application\/)?(?:at\+)?jwt$/i.test(type);
}

type KeySet = ReturnType<typeof createLocalJWKSet>;

/**
 * The keys of the issuer: where they are, and when to ask for them. Not by `createRemoteJWKSet`,
 * which counts by the wall clock alone: if that is set back, a withdrawn key would stay valid.
 */
class IssuerKeys {
  readonly #madeAt: Moment;
  #known: { readonly keys: KeySet; readonly fetchedAt: Moment } | undefined;
  #asked: { readonly at: Moment; readonly outcome: Promise<void> } | undefined;

  constructor(
    private readonly source: JwtIssuer,
    private readonly clocks: Clocks,
  ) {
    this.#madeAt = clocks.now();
  }

  /** Since the issuer last sent its keys; before the first time, since the start. */
  get ageMs(): number {
    return this.clocks.msSince(this.#known?.fetchedAt ?? this.#madeAt);
  }

  /**
   * Fetches the keys. If the issuer was asked a moment ago, that counts instead. If it fails, the
   * known ones count until they are too old.
   */
  refresh(): Promise<void> {
    const asked = this.#asked;
    if (asked && this.clocks.msSince(asked.at) < cooldownMs) return asked.outcome;
    const at = this.clocks.now();
    const outcome = fetchKeys(this.source).then((keys) => {
      this.#known = { keys, fetchedAt: at };
    });
    this.#asked = { at, outcome };
    return outcome;
  }

  /**
   * The key of a token. Fails with `unauthenticated` if there is none, and with `unavailable` if no
   * keys are known and the issuer can't be asked.
   */
  async find(header: JWSHeaderParameters): Promise<CryptoKey> {
    const known = await this.#findKnown(header);
    if (known) return known;
    // The issuer may have added it.
    await this.refresh().catch(() => {});
    const added = await this.#findKnown(header);
    if (added) return added;
    // If we have keys, the token's isn't among them, whether or not the issuer could be asked.
    throw this.#freshKeys() ? refusedToken("kid") : unreachable;
  }

  async #findKnown(header: JWSHeaderParameters): Promise<CryptoKey | undefined> {
    return this.#freshKeys()?.(header).catch(() => undefined);
  }

  #freshKeys(): KeySet | undefined {
    return this.ageMs < keysMaxAgeMs ? this.#known?.keys : undefined;
  }
}

async function fetchKeys({ issuer, keysUrl }: JwtIssuer): Promise<KeySet> {
  // Loaded only where an issuer is configured: it takes 60 ms and more.
  const { createLocalJWKSet } = await import("jose");
  const init: RequestInit = {
    headers: { accept: "application/json, application/jwk-set+json" },
    redirect: "manual",
    signal: AbortSignal.timeout(fetchTimeoutMs),
  };
  const url = keysUrl ?? (await discoverKeysUrl(issuer, init));
  const response = await fetch(url, init);
  if (response.status !== 200) throw new Error(`${url} responded with ${response.status}.`);
  return createLocalJWKSet((await response.json()) as JSONWebKeySet);
}

async function discoverKeysUrl(issuer: string, init: RequestInit): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`${url} responded with ${response.status}.`);
  const document = (await response.json()) as Record<string, unknown>;
  // Otherwise one issuer's document could pass for another's.
  if (document.issuer !== issuer) throw new Error(`${url} is for another issuer.`);
  const keysUrl = URL.parse(String(document.jwks_uri));
  // Nobody outside may send the service to an address on this machine.
  if (keysUrl?.protocol === "https:" || keysUrl?.origin === new URL(issuer).origin) {
    return keysUrl.href;
  }
  throw new Error(`${url} names no jwks_uri that can be trusted.`);
}

const unreachable = new PlantStoreError(
  "unavailable",
  "The issuer of this token can't be asked for its keys. Try again later.",
  { tokenError: "issuer" },
);
