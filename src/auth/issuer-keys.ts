/**
 * The keys of the JWT issuer. `jose` caches and selects them; the limits on asking for them are
 * here: how often, how much is read, and how many requests wait for how long.
 */
import type {
  createRemoteJWKSet,
  FetchImplementation,
  JWKSCacheInput,
  JWTVerifyGetKey,
} from "jose";
import { deadline } from "../async/deadline.ts";
import { PlantStoreError } from "../domain/errors.ts";

export interface KeySource {
  /** The exact claim `iss`, and the base of the discovery document's URL. */
  readonly issuer: string;
  /** Where its keys are. Absent: its discovery document says so. */
  readonly keysUrl: string | undefined;
}

/** Tokens with unknown keys make us ask the issuer at most this often. */
const cooldownMs = 10_000;
/** An issuer that fails is asked again after this time. */
const retryMs = 1_000;
/** How long keys count when the issuer can't confirm them. */
const keysMaxAgeMs = 3_600_000;
const fetchTimeoutMs = 5_000;
/** Of a key set or a discovery document; large issuers publish 20 KB. */
const documentBytesMax = 256 * 1024;

/** Requests that wait for the issuer at the same time, and how long each of them does. */
const waitingMax = 256;
const waitMs = 1_000;

type KeySet = ReturnType<typeof createRemoteJWKSet>;

export class IssuerKeys {
  readonly #source: KeySource;
  readonly #cache: JWKSCacheInput = {};
  #keySet: Promise<KeySet> | undefined;
  #waiting = 0;

  constructor(source: KeySource) {
    this.#source = source;
  }

  /** When the issuer last sent its keys; absent before the first time. */
  get fetchedAtMs(): number | undefined {
    return this.#cache.uat;
  }

  /** Fetches the keys. If that fails, the known ones count until they are too old. */
  async refresh(): Promise<void> {
    await (await this.#open()).reload();
  }

  /**
   * The key of a token. Fails with `unavailable` if the issuer would have to be asked for it and
   * can't be, or not yet; with an error of jose's if the issuer has no such key.
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const keys = await this.#open();
    const { fresh } = keys;
    if (!fresh) await this.#waitFor(keys);
    try {
      return await keys(header, token);
    } catch (error) {
      if (!fresh || (error as { code?: string }).code !== "ERR_JWKS_NO_MATCHING_KEY") throw error;
    }
    const cooldownLeftMs = cooldownMs - Math.abs(Date.now() - (this.#cache.uat ?? 0));
    if (cooldownLeftMs > 0) throw unknownKey(Math.ceil(cooldownLeftMs / 1_000));
    await this.#waitFor(keys);
    return keys(header, token);
  };

  async #waitFor(keys: KeySet): Promise<void> {
    if (this.#waiting >= waitingMax) throw unreachable();
    this.#waiting++;
    const fetching = keys.reload().then(
      () => true,
      () => false,
    );
    const isFetched = await deadline(fetching, waitMs, () => false);
    this.#waiting--;
    if (!isFetched) throw unreachable();
  }

  /** Loads `jose` only where an issuer is configured: it takes 60 ms and more. */
  #open(): Promise<KeySet> {
    this.#keySet ??= openKeySet(this.#source, this.#cache);
    return this.#keySet;
  }
}

async function openKeySet({ issuer, keysUrl }: KeySource, cache: JWKSCacheInput): Promise<KeySet> {
  const { createRemoteJWKSet, customFetch, jwksCache } = await import("jose");
  let askedAtMs = Number.NEGATIVE_INFINITY;
  const fetchKeys: FetchImplementation = async (_, init) => {
    if (Math.abs(Date.now() - askedAtMs) < retryMs) throw new Error("Asked a moment ago.");
    askedAtMs = Date.now();
    const url = keysUrl ?? (await discoverKeysUrl(issuer, init));
    return fetchDocument(url, init);
  };
  return createRemoteJWKSet(new URL(keysUrl ?? issuer), {
    timeoutDuration: fetchTimeoutMs,
    cacheMaxAge: keysMaxAgeMs,
    // `find` decides when an unknown key is worth a request.
    cooldownDuration: Number.POSITIVE_INFINITY,
    [customFetch]: fetchKeys,
    [jwksCache]: cache,
  });
}

async function discoverKeysUrl(issuer: string, init: RequestInit): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const response = await fetchDocument(url, init);
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

/** Fetches a document whole, up to a limit: one without an end would fill the memory. */
async function fetchDocument(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: "error" });
  if (!response.ok) throw new Error(`${url} responded with ${response.status}.`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > documentBytesMax) {
      throw new Error(`${url} sent more than ${documentBytesMax} bytes.`);
    }
    chunks.push(chunk);
  }
  return new Response(Buffer.concat(chunks));
}

function unreachable(): PlantStoreError {
  const message = "The issuer of this token can't be asked for its keys. Try again later.";
  return new PlantStoreError("unavailable", message, { tokenError: "issuer" });
}

function unknownKey(retryAfterSeconds: number): PlantStoreError {
  const message = "The key of this token isn't known yet. Try again later.";
  return new PlantStoreError("unavailable", message, { tokenError: "kid", retryAfterSeconds });
}
