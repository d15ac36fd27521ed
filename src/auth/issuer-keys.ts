/**
 * The public keys of an issuer: kept, fetched anew, and trusted for a bounded time. It checks no
 * token.
 */
import type { FlattenedJWSInput, JWTHeaderParameters, JWTVerifyGetKey } from "jose";
import { PlantStoreError } from "../domain/errors.ts";
import type { JwtIssuer } from "../domain/issuer.ts";
import { fetchKeySet } from "./issuer-documents.ts";

/**
 * Tokens with keys that nobody knows make the issuer be asked once in this time, not more often.
 */
const cooldownMs = 10_000;
/** As often is an issuer asked whose keys are missing, as callers are told to try again. */
const retryMs = 1_000;
/** How long keys count although the issuer cannot be asked whether they still do. */
const trustMs = 3_600_000;

export interface FoundKey {
  readonly key: Awaited<ReturnType<JWTVerifyGetKey>>;
  /** The state of the keys that it was found among; they may have changed since. */
  readonly changes: number;
}

export class IssuerKeys {
  readonly #issuer: JwtIssuer;
  readonly #nowMs: () => number;
  #findKey: JWTVerifyGetKey | undefined;
  #text = "";
  #changes = 0;
  #confirmedAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;

  constructor(issuer: JwtIssuer, nowMs: () => number) {
    this.#issuer = issuer;
    this.#nowMs = nowMs;
  }

  /** Grows whenever a key came or went: what was decided with the keys before counts no more. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether the keys that are known still count. A clock that was set back proves nothing. */
  areTrusted(nowMs: number): boolean {
    return Math.abs(nowMs - this.#confirmedAtMs) <= trustMs;
  }

  /**
   * Finds the key that a token's header names. Fails with `unavailable` if the issuer cannot be
   * asked and no keys of it count; with an error of jose's if there is no such key.
   */
  async find(
    header: JWTHeaderParameters,
    token: FlattenedJWSInput,
    traceparent?: string,
  ): Promise<FoundKey> {
    if (!this.#findKey || !this.areTrusted(this.#nowMs())) {
      await this.#refreshUnlessWithin(retryMs, traceparent);
    }
    const findKey = this.#findKey;
    const changes = this.#changes;
    if (!findKey || !this.areTrusted(this.#nowMs())) throw unreachable();
    try {
      return { key: await findKey(header, token), changes };
    } catch (error) {
      // The issuer may have a new key. If it does not answer, the keys that count are all there
      // are.
      await this.#refreshUnlessWithin(cooldownMs, traceparent);
      if (this.#findKey === findKey) throw error;
      return await this.find(header, token, traceparent);
    }
  }

  /** Asks the issuer for its keys, unless it is being asked already. */
  refresh(traceparent?: string): Promise<void> {
    this.#asking ??= this.#ask(traceparent).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** Joins the asking that is under way; begins none so soon after the last. */
  async #refreshUnlessWithin(pauseMs: number, traceparent?: string): Promise<void> {
    const isTooSoon = Math.abs(this.#nowMs() - this.#askedAtMs) < pauseMs;
    if (this.#asking || !isTooSoon) await this.refresh(traceparent).catch(() => {});
  }

  async #ask(traceparent?: string): Promise<void> {
    const nowMs = this.#nowMs();
    this.#askedAtMs = nowMs;
    const [keySet, { createLocalJWKSet }] = await Promise.all([
      fetchKeySet(this.#issuer, { traceparent }),
      import("jose"),
    ]);
    const text = JSON.stringify(keySet);
    if (text !== this.#text) {
      this.#findKey = createLocalJWKSet(keySet);
      this.#text = text;
      this.#changes++;
    }
    this.#confirmedAtMs = nowMs;
  }
}

function unreachable(): PlantStoreError {
  const message = "The issuer of this token cannot be asked for its keys. Try again later.";
  return new PlantStoreError("unavailable", message);
}
