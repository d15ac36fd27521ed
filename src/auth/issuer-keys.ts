/** The keys of the JWT issuer, which `jose` caches: where they are, and when to ask for them. */
import type {
  CryptoKey,
  FetchImplementation,
  JWKSCacheInput,
  JWSHeaderParameters,
  RemoteJWKSet,
} from "jose";
import { memoizeAsync } from "../async/share.ts";
import { PlantStoreError, refusedToken } from "../domain/errors.ts";

export interface KeySource {
  /** The exact claim `iss`, and the base of the discovery document's URL. */
  readonly issuer: string;
  /** Where its keys are. Absent: its discovery document says so. */
  readonly keysUrl: string | undefined;
}

/** The issuer is asked at most this often, whatever tokens arrive. */
const cooldownMs = 10_000;
/** How long keys count when the issuer can't confirm them. */
const keysMaxAgeMs = 3_600_000;

export class IssuerKeys {
  readonly #cache: JWKSCacheInput = {};
  /** Loads `jose` only where an issuer is configured: it takes 60 ms and more. */
  readonly #open: () => Promise<RemoteJWKSet>;

  constructor(source: KeySource) {
    this.#open = memoizeAsync(() => openKeySet(source, this.#cache));
  }

  /** When the issuer last sent its keys; absent before the first time. */
  get fetchedAtMs(): number | undefined {
    return this.#cache.uat;
  }

  /** Fetches the keys. If that fails, the known ones count until they are too old. */
  async refresh(): Promise<void> {
    const keys = await this.#open();
    if (!keys.coolingDown) await keys.reload();
  }

  /**
   * The key of a token. Fails with `unauthenticated` if there is none, and with `unavailable` if no
   * keys are known and the issuer can't be asked.
   */
  async find(header: JWSHeaderParameters): Promise<CryptoKey> {
    const keys = await this.#open();
    try {
      return await keys(header);
    } catch {
      // If we have keys, the token's isn't among them, whether or not the issuer could be asked.
      throw keys.fresh ? refusedToken("kid") : unreachable;
    }
  }
}

async function openKeySet(
  { issuer, keysUrl }: KeySource,
  cache: JWKSCacheInput,
): Promise<RemoteJWKSet> {
  const { createRemoteJWKSet, customFetch, jwksCache } = await import("jose");
  let askedAtMs = Number.NEGATIVE_INFINITY;
  const fetchKeys: FetchImplementation = async (_, init) => {
    // A failure starts no cooldown of jose's.
    if (Math.abs(Date.now() - askedAtMs) < cooldownMs) throw new Error("Asked a moment ago.");
    askedAtMs = Date.now();
    return fetch(keysUrl ?? (await discoverKeysUrl(issuer, init)), init);
  };
  return createRemoteJWKSet(new URL(keysUrl ?? issuer), {
    cooldownDuration: cooldownMs,
    cacheMaxAge: keysMaxAgeMs,
    [customFetch]: fetchKeys,
    [jwksCache]: cache,
  });
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
