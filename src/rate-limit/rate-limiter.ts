/**
 * Limits the requests of each credential by the generic cell rate algorithm (GCRA): one time per
 * caller, when their bucket will be empty, in memory that all threads of the process share.
 */
import type { Caller } from "../domain/caller.ts";
import type { BucketStorage } from "../domain/storage.ts";

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

export const unlimited: UsageLimits = { rate: undefined, plantsMax: undefined };

export interface Allowance {
  readonly remaining: number;
  /** Whole seconds until there is one more. */
  readonly nextSeconds: number;
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
 * A slot holds a tag of 16 bits and a time of 48. A caller may use any of the 8 slots of their set
 * (one cache line). If others use all 8, the one closest to empty is evicted, and its owner gets
 * those few requests again. Two callers with the same set and tag (1 pair in 537 million) share a
 * limit.
 */
const sets = 8_192;
const setSlots = 8;
const tagsMax = 65_535;
const wordSize = 2 ** 32;

export function createBucketMemory(): BucketMemory {
  const bytes = sets * setSlots * BigUint64Array.BYTES_PER_ELEMENT;
  return {
    memory: new SharedArrayBuffer(bytes),
    originMs: performance.timeOrigin,
    seed: crypto.randomUUID(),
  };
}

interface Place {
  /** The same on every instance. */
  readonly key: number;
  readonly firstSlot: number;
  readonly tag: number;
}

export class RateLimiter {
  readonly #windowSeconds: number;
  /** Time is counted in units of which a request costs a whole number, so nothing is rounded. */
  readonly #cost: number;
  readonly #capacity: number;
  readonly #unitsPerMs: number;
  readonly #nowMs: () => number;
  readonly #slots: BigUint64Array;
  /** The same memory. Bigints are slow, so only the swap itself uses them. */
  readonly #words: Uint32Array;
  readonly #seed: string;
  readonly #places = new WeakMap<Caller, Place>();
  /** What this thread let through since the last exchange, by key. */
  #passed = new Map<number, { readonly place: Place; requests: number }>();
  readonly #storage: BucketStorage | undefined;

  constructor(
    { requests, windowSeconds }: RateLimit,
    { memory, originMs, seed }: BucketMemory,
    storage?: BucketStorage,
    nowMs = createClock(originMs),
  ) {
    this.#windowSeconds = windowSeconds;
    this.#cost = Math.ceil((windowSeconds * 1e6) / requests);
    this.#capacity = requests * this.#cost;
    this.#unitsPerMs = this.#capacity / (windowSeconds * 1_000);
    this.#slots = new BigUint64Array(memory);
    this.#words = new Uint32Array(memory);
    this.#seed = seed;
    this.#storage = storage;
    this.#nowMs = nowMs;
  }

  /** Counts a request. Returns the level of the bucket with it, which `permits` judges. */
  take(caller: Caller): number {
    const place = this.#placeOf(caller);
    for (;;) {
      const slot = this.#find(place);
      const emptyAt = this.#read(slot, place);
      const now = this.#now();
      const level = Math.max(emptyAt - now, 0) + this.#cost;
      if (!this.permits(level)) return level;
      if (this.#replace(slot, place, now + level)) {
        if (this.#storage) this.#notePassed(place);
        return level;
      }
    }
  }

  permits(level: number): boolean {
    return level <= this.#capacity;
  }

  /** What is left after the request that found this level. */
  allowance(level: number): Allowance {
    // A refused request isn't in the bucket.
    const room = this.#capacity - level + (this.permits(level) ? 0 : this.#cost);
    const remaining = Math.max(0, Math.floor(room / this.#cost));
    const missing = (remaining + 1) * this.#cost - room;
    return { remaining, nextSeconds: Math.ceil(missing / (this.#capacity / this.#windowSeconds)) };
  }

  /**
   * Reports to the storage what this thread let through, and learns what everyone did. If it fails,
   * that much isn't reported again: each instance limits alone meanwhile.
   */
  async exchange(): Promise<void> {
    const passed = this.#passed;
    this.#passed = new Map();
    const now = this.#now();
    const pours = Array.from(passed.values(), ({ place, requests }) => {
      const level = this.#read(this.#find(place), place) - now;
      return { key: place.key, levelMs: Math.min(requests * this.#cost, level) / this.#unitsPerMs };
    }).filter(({ levelMs }) => levelMs > 0);
    if (pours.length === 0) return;
    for (const { key, levelMs } of (await this.#storage?.pour(pours)) ?? []) {
      const place = passed.get(key)?.place;
      const since = (this.#passed.get(key)?.requests ?? 0) * this.#cost;
      if (place) this.#raise(place, now + Math.round(levelMs * this.#unitsPerMs) + since);
    }
  }

  #raise(place: Place, time: number): void {
    for (;;) {
      const slot = this.#find(place);
      if (this.#read(slot, place) >= time || this.#replace(slot, place, time)) return;
    }
  }

  /** When the bucket will be empty; 0 if the slot isn't this caller's. */
  #read(slot: number, { tag }: Place): number {
    const words = this.#words;
    for (;;) {
      const high = Atomics.load(words, 2 * slot + 1);
      const low = Atomics.load(words, 2 * slot);
      if (Atomics.load(words, 2 * slot + 1) !== high) continue;
      oldWords[0] = low;
      oldWords[1] = high;
      return high >>> 16 === tag ? (high & 0xffff) * wordSize + low : 0;
    }
  }

  /**
   * Writes a slot if it is still as `#read` found it. Mostly only the low word changes, and
   * swapping 32 bits needs no bigints, which take 1 µs. Who changes the high word changes both.
   */
  #replace(slot: number, { tag }: Place, time: number): boolean {
    const low = time % wordSize;
    const high = tag * 2 ** 16 + Math.floor(time / wordSize);
    if (high === oldWords[1]) {
      const oldLow = oldWords[0] as number;
      return Atomics.compareExchange(this.#words, 2 * slot, oldLow, low) === oldLow;
    }
    newWords[0] = low;
    newWords[1] = high;
    const old = oldSlot[0] as bigint;
    return Atomics.compareExchange(this.#slots, slot, old, newSlot[0] as bigint) === old;
  }

  /**
   * The caller's slot, or else the one of their set that is empty first. Two threads that look for
   * a new caller's slot find the same one, and one of them fails to replace it.
   */
  #find(place: Place): number {
    const { firstSlot } = place;
    const own = this.#findOwn(place);
    if (own >= 0) return own;
    const timeOf = (slot: number) => BigInt.asUintN(48, Atomics.load(this.#slots, slot));
    let first = firstSlot;
    for (let slot = firstSlot + 1; slot < firstSlot + setSlots; slot++) {
      if (timeOf(slot) < timeOf(first)) first = slot;
    }
    // Another thread may have taken a slot for the same caller meanwhile, which made it fuller.
    const taken = this.#findOwn(place);
    return taken >= 0 ? taken : first;
  }

  #findOwn({ firstSlot, tag }: Place): number {
    for (let slot = firstSlot; slot < firstSlot + setSlots; slot++) {
      // Little-endian: the second word has the tag.
      if (Atomics.load(this.#words, 2 * slot + 1) >>> 16 === tag) return slot;
    }
    return -1;
  }

  #notePassed(place: Place): void {
    const known = this.#passed.get(place.key);
    if (known) known.requests++;
    else this.#passed.set(place.key, { place, requests: 1 });
  }

  #placeOf(caller: Caller): Place {
    const known = this.#places.get(caller);
    if (known) return known;
    const local = sha256(this.#seed + caller.credential);
    const place = {
      key: Number(sha256(caller.credential).readBigUInt64LE() >> 11n),
      firstSlot: (local.readUInt32LE(0) % sets) * setSlots,
      tag: 1 + (local.readUInt32LE(4) % tagsMax),
    };
    this.#places.set(caller, place);
    return place;
  }

  #now(): number {
    return Math.floor(this.#nowMs() * this.#unitsPerMs);
  }
}

/** Little-endian words of a slot, and the slot as a bigint. */
const oldSlot = new BigUint64Array(1);
const oldWords = new Uint32Array(oldSlot.buffer);
const newSlot = new BigUint64Array(1);
const newWords = new Uint32Array(newSlot.buffer);

function sha256(text: string): Buffer {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}

/** Monotonic. Each thread counts from its own start, so the time between their starts is added. */
function createClock(originMs: number): () => number {
  const aheadMs = performance.timeOrigin - originMs;
  return () => performance.now() + aheadMs;
}
