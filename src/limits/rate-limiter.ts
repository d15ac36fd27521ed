/**
 * Limits the requests of each credential by the generic cell rate algorithm (GCRA): one time per
 * caller, when their bucket will be empty, in memory that all threads of the process share.
 */
import type { Caller } from "../domain/caller.ts";

/** Up to `requests` at once, and then one more every `windowSeconds / requests`. */
export interface RateLimit {
  readonly requests: number;
  readonly windowSeconds: number;
}

export interface UsageLimits {
  /** Per credential. Absent: unlimited. */
  readonly rate: RateLimit | undefined;
  /** Per garden. Absent: unlimited. */
  readonly plantsMax: number | undefined;
}

/** What another thread needs to count together with this one. */
export interface BucketMemory {
  readonly memory: SharedArrayBuffer;
  /** Where time starts, for all threads. */
  readonly originMs: number;
  /** Keeps callers who choose their names, such as the subjects of JWTs, from aiming at a slot. */
  readonly seed: string;
}

/**
 * A slot holds a tag of 16 bits and a time of 48. A caller may use any of the 8 slots of their set.
 * If others use all 8, the one closest to empty is evicted, and its owner gets those few requests
 * again. Two callers with the same set and tag (1 pair in 537 million) share a limit.
 */
const sets = 8_192;
const setSlots = 8;
const tagsMax = 65_535;
const timeBits = 48;

export function createBucketMemory(): BucketMemory {
  const bytes = sets * setSlots * BigUint64Array.BYTES_PER_ELEMENT;
  return {
    memory: new SharedArrayBuffer(bytes),
    originMs: performance.timeOrigin,
    seed: crypto.randomUUID(),
  };
}

interface Bucket {
  readonly firstSlot: number;
  readonly tag: number;
}

export class RateLimiter {
  readonly #windowSeconds: number;
  /** Time is counted in small units, so that a request costs a whole number of them. */
  readonly #cost: number;
  readonly #capacity: number;
  readonly #unitsPerMs: number;
  readonly #nowMs: () => number;
  readonly #slots: BigUint64Array;
  /** The same memory: on little-endian machines the last of a slot's four is its tag. */
  readonly #tags: Uint16Array;
  readonly #seed: string;
  readonly #buckets = new WeakMap<Caller, Bucket>();

  constructor(
    { requests, windowSeconds }: RateLimit,
    { memory, originMs, seed }: BucketMemory,
    // Monotonic. Each thread counts from its own start, so the time between their starts is added.
    nowMs = () => performance.now() + performance.timeOrigin - originMs,
  ) {
    this.#windowSeconds = windowSeconds;
    this.#cost = Math.ceil((windowSeconds * 1e6) / requests);
    this.#capacity = requests * this.#cost;
    this.#unitsPerMs = this.#capacity / (windowSeconds * 1_000);
    this.#slots = new BigUint64Array(memory);
    this.#tags = new Uint16Array(memory);
    this.#seed = seed;
    this.#nowMs = nowMs;
  }

  /** Counts a request. Returns the level of the bucket with it, which `permits` judges. */
  take(caller: Caller): number {
    const bucket = this.#bucketOf(caller);
    for (;;) {
      const slot = this.#find(bucket);
      const old = Atomics.load(this.#slots, slot);
      const now = this.#now();
      const level = Math.max(timeOf(old, bucket) - now, 0) + this.#cost;
      if (!this.permits(level)) return level;
      const value = (BigInt(bucket.tag) << BigInt(timeBits)) | BigInt(now + level);
      // Otherwise another thread was faster, and this one tries again.
      if (Atomics.compareExchange(this.#slots, slot, old, value) === old) return level;
    }
  }

  permits(level: number): boolean {
    return level <= this.#capacity;
  }

  /** What is left after the request that found this level, and when there is one more. */
  allowance(level: number): { readonly remaining: number; readonly nextSeconds: number } {
    // A refused request isn't in the bucket.
    const room = this.#capacity - level + (this.permits(level) ? 0 : this.#cost);
    const remaining = Math.max(0, Math.floor(room / this.#cost));
    const missing = (remaining + 1) * this.#cost - room;
    return { remaining, nextSeconds: Math.ceil(missing / (this.#capacity / this.#windowSeconds)) };
  }

  /** The caller's slot, or else the one of their set that is empty first. */
  #find(bucket: Bucket): number {
    const own = this.#findOwn(bucket);
    if (own !== undefined) return own;
    const emptyAt = (slot: number) => BigInt.asUintN(timeBits, Atomics.load(this.#slots, slot));
    let first = bucket.firstSlot;
    for (let slot = first + 1; slot < bucket.firstSlot + setSlots; slot++) {
      if (emptyAt(slot) < emptyAt(first)) first = slot;
    }
    // Another thread may just have taken a slot for the same caller.
    return this.#findOwn(bucket) ?? first;
  }

  #findOwn({ firstSlot, tag }: Bucket): number | undefined {
    for (let slot = firstSlot; slot < firstSlot + setSlots; slot++) {
      if (Atomics.load(this.#tags, 4 * slot + 3) === tag) return slot;
    }
    return undefined;
  }

  #bucketOf(caller: Caller): Bucket {
    const known = this.#buckets.get(caller);
    if (known) return known;
    const hash = new Bun.CryptoHasher("sha256").update(this.#seed + caller.credential).digest();
    const bucket = {
      firstSlot: (hash.readUInt32LE(0) % sets) * setSlots,
      tag: 1 + (hash.readUInt32LE(4) % tagsMax),
    };
    this.#buckets.set(caller, bucket);
    return bucket;
  }

  #now(): number {
    return Math.floor(this.#nowMs() * this.#unitsPerMs);
  }
}

/** When the caller's bucket will be empty; 0 if the slot is another's. */
function timeOf(slot: bigint, { tag }: Bucket): number {
  return Number(slot >> BigInt(timeBits)) === tag ? Number(BigInt.asUintN(timeBits, slot)) : 0;
}
