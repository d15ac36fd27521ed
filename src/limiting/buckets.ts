/**
 * Leaky buckets in memory that all threads of a process share. Every request pours one into a
 * bucket, and all buckets run out evenly; what does not fit is refused. It knows keys, not whose
 * they are.
 */
import type { RateLimit } from "../domain/limits.ts";

/** What another thread needs to use the same buckets. */
export interface BucketMemory {
  readonly memory: SharedArrayBuffer;
  /** Where time begins, the same for all threads. */
  readonly originMs: number;
  /** The time of the buckets just before the thread that uses this was started. */
  readonly startMs: number;
  /** What shelves are chosen by: two random odd numbers of 32 bits. */
  readonly factors: readonly [low: number, high: number];
}

/** What was poured into a bucket and is still in it. */
export interface Pour {
  readonly key: number;
  readonly grains: number;
}

/** A key belongs on one shelf, whose buckets one thread at a time may touch. */
const shelfBits = 13;
const shelves = 2 ** shelfBits;
const shelfBuckets = 8;
const buckets = shelves * shelfBuckets;
const [free, held] = [0, 1];
/**
 * A holder needs less than a microsecond, unless the system has put it to sleep in the midst of it.
 */
const triesBeforeSleep = 1_000;
const sleepMs = 1;
/** Finer than any clock, and few enough that a double counts them exactly for 17 years. */
const grainsPerMicrosecond = 8;

export function makeBucketMemory(): BucketMemory {
  const bytes =
    3 * buckets * Float64Array.BYTES_PER_ELEMENT + shelves * Int32Array.BYTES_PER_ELEMENT;
  const [low = 0, high = 0] = crypto.getRandomValues(new Uint32Array(2));
  return {
    memory: new SharedArrayBuffer(bytes),
    originMs: performance.timeOrigin,
    startMs: 0,
    factors: [low | 1, high | 1],
  };
}

/**
 * Levels are whole numbers of grains, of which one runs out after the other, all at the same pace.
 */
export class Buckets {
  readonly requestGrains: number;
  readonly capacity: number;
  readonly #grainsPerMs: number;
  readonly #nowMs: () => number;
  readonly #keys: Float64Array;
  /** When each has run out, in grains since the origin. One that has run out is as good as none. */
  readonly #emptyAt: Float64Array;
  /** What was poured into each since `takePours`. */
  readonly #poured: Float64Array;
  readonly #locks: Int32Array;
  readonly #factors: BucketMemory["factors"];
  #takenAt = 0;

  constructor(
    { requests, windowSeconds }: RateLimit,
    { memory, factors, ...start }: BucketMemory,
    nowMs = createClock(start),
  ) {
    this.requestGrains = grainsPerMicrosecond * Math.ceil((windowSeconds * 1e6) / requests);
    this.capacity = requests * this.requestGrains;
    this.#grainsPerMs = this.capacity / (windowSeconds * 1_000);
    this.#nowMs = nowMs;
    this.#factors = factors;
    const bytes = buckets * Float64Array.BYTES_PER_ELEMENT;
    this.#keys = new Float64Array(memory, 0, buckets);
    this.#emptyAt = new Float64Array(memory, bytes, buckets);
    this.#poured = new Float64Array(memory, 2 * bytes, buckets);
    this.#locks = new Int32Array(memory, 3 * bytes, shelves);
  }

  /**
   * Pours a request into the bucket of `key`, an integer, if it fits. The level with this request
   * in it: above the capacity, it did not fit and nothing was poured.
   */
  pour(key: number): number {
    const shelf = this.#shelfOf(key);
    this.#hold(shelf);
    const now = this.#now();
    const bucket = this.#find(key, shelf, now);
    const level = Math.max(read(this.#emptyAt, bucket) - now, 0) + this.requestGrains;
    if (level <= this.capacity) {
      this.#emptyAt[bucket] = now + level;
      this.#poured[bucket] = read(this.#poured, bucket) + this.requestGrains;
    }
    this.#release(shelf);
    return level;
  }

  /** What was poured into buckets since the last call, as far as it has not run out again. */
  takePours(): Pour[] {
    const pours: Pour[] = [];
    this.#takenAt = this.#now();
    for (let bucket = 0; bucket < buckets; bucket++) {
      if (this.#poured[bucket] === 0) continue;
      const shelf = Math.floor(bucket / shelfBuckets);
      this.#hold(shelf);
      const level = Math.max(read(this.#emptyAt, bucket) - this.#takenAt, 0);
      const grains = Math.min(read(this.#poured, bucket), level);
      if (grains > 0) pours.push({ key: read(this.#keys, bucket), grains });
      this.#poured[bucket] = 0;
      this.#release(shelf);
    }
    return pours;
  }

  /**
   * Others have poured too: at the time of `takePours` there were `level` in the bucket, all told.
   */
  raise(key: number, level: number): void {
    const shelf = this.#shelfOf(key);
    this.#hold(shelf);
    const bucket = this.#find(key, shelf, this.#now());
    const emptyAt = this.#takenAt + level + read(this.#poured, bucket);
    this.#emptyAt[bucket] = Math.max(read(this.#emptyAt, bucket), emptyAt);
    this.#release(shelf);
  }

  /**
   * By what nobody outside knows: whoever has a say in names, and so in keys, could fill a shelf
   * with their own, where two that push each other out are never full.
   */
  #shelfOf(key: number): number {
    const [low, high] = this.#factors;
    const mixed = Math.imul(key, low) + Math.imul(Math.floor(key / 2 ** 32), high);
    return mixed >>> (32 - shelfBits);
  }

  #now(): number {
    return Math.floor(this.#nowMs() * this.#grainsPerMs);
  }

  /**
   * The bucket of the key, which may have to take the place of another: of the one that holds
   * least. If that has not run out, the shelf is full, and who used it may use that little once
   * more.
   */
  #find(key: number, shelf: number, now: number): number {
    const first = shelf * shelfBuckets;
    let emptiest = first;
    for (let bucket = first; bucket < first + shelfBuckets; bucket++) {
      if (this.#keys[bucket] === key) return bucket;
      if (read(this.#emptyAt, bucket) < read(this.#emptyAt, emptiest)) emptiest = bucket;
    }
    this.#keys[emptiest] = key;
    this.#emptyAt[emptiest] = now;
    this.#poured[emptiest] = 0;
    return emptiest;
  }

  #hold(shelf: number): void {
    for (let tries = 1; this.#isHeldElsewhere(shelf); tries++) {
      if (tries % triesBeforeSleep === 0) Atomics.wait(this.#locks, shelf, held, sleepMs);
    }
  }

  #isHeldElsewhere(shelf: number): boolean {
    return Atomics.compareExchange(this.#locks, shelf, free, held) === held;
  }

  #release(shelf: number): void {
    Atomics.store(this.#locks, shelf, free);
  }
}

/** More than a thread takes to start. */
const startingMs = 2_000;

/**
 * It never goes back, and is the same on all threads of a process. Each counts from its own start,
 * and when that was, only the clock of the system says exactly. Where that was set in between, as
 * shortly after a machine has started, it is wrong by as much for good: no thread began before it
 * was started, nor long after.
 */
function createClock({
  originMs,
  startMs,
}: Pick<BucketMemory, "originMs" | "startMs">): () => number {
  const saidMs = performance.timeOrigin - originMs;
  const isSet = saidMs < startMs || saidMs > startMs + startingMs;
  const aheadMs = isSet ? startMs : saidMs;
  return () => performance.now() + aheadMs;
}

function read(numbers: Float64Array, index: number): number {
  return numbers[index] as number;
}
