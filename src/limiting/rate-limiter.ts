/**
 * Counts the requests of each credential against the rate limit. It does not know how callers are
 * told.
 */
import type { Caller } from "../domain/caller.ts";
import type { RateLimit } from "../domain/limits.ts";
import { type BucketMemory, Buckets } from "./buckets.ts";

export interface Allowance {
  readonly remaining: number;
  /** Whole seconds until there is one more. */
  readonly nextSeconds: number;
}

export class RateLimiter {
  readonly #windowSeconds: number;
  readonly #buckets: Buckets;
  readonly #keys = new WeakMap<Caller, number>();

  constructor(limit: RateLimit, memory: BucketMemory, nowMs?: () => number) {
    this.#windowSeconds = limit.windowSeconds;
    this.#buckets = new Buckets(limit, memory, nowMs);
  }

  /** The level of the caller's bucket with this request in it, which may be too much. */
  take(caller: Caller): number {
    let key = this.#keys.get(caller);
    if (key === undefined) {
      key = keyOf(caller.credential);
      this.#keys.set(caller, key);
    }
    return this.#buckets.pour(key);
  }

  permits(level: number): boolean {
    return level <= this.#buckets.capacity;
  }

  /** What is left after the request that found this level. */
  allowance(level: number): Allowance {
    const { requestGrains, capacity } = this.#buckets;
    // A request that was refused is not in the bucket.
    const room = capacity - level + (this.permits(level) ? 0 : requestGrains);
    const remaining = Math.max(0, Math.floor(room / requestGrains));
    const missing = (remaining + 1) * requestGrains - room;
    return { remaining, nextSeconds: Math.ceil(missing / (capacity / this.#windowSeconds)) };
  }
}

/**
 * The same on every instance. 53 bits of a secure hash, so that nobody can aim at another's bucket.
 */
function keyOf(credential: string): number {
  const digest = new Bun.CryptoHasher("sha256").update(credential).digest();
  return Number(digest.readBigUInt64LE() >> 11n);
}
