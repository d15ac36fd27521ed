/** Limits the streams that each token has open, on all threads of the process together. */
import type { Caller } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";

const streamsPerToken = 64;
/** A token's slot is its hash. Two tokens rarely share one; then they share the limit, too. */
const slots = 2 ** 20;

/** The number of streams in each slot, in memory that the threads share. */
export type StreamCounts = SharedArrayBuffer;

/** The last number is a seed, so that callers who choose their names can't aim at a slot. */
export function createStreamCounts(): StreamCounts {
  const counts = new Int32Array(new SharedArrayBuffer(4 * (slots + 1)));
  counts[slots] = crypto.getRandomValues(new Int32Array(1))[0] ?? 0;
  return counts.buffer as SharedArrayBuffer;
}

export class StreamLimit {
  readonly #counts: Int32Array;

  constructor(counts = createStreamCounts()) {
    this.#counts = new Int32Array(counts);
  }

  /** Counts a stream until `release` is called with the result. Fails if there are too many. */
  take({ credential }: Caller): number {
    const slot = Number(BigInt(Bun.hash(credential, this.#counts[slots])) % BigInt(slots));
    if (Atomics.add(this.#counts, slot, 1) < streamsPerToken) return slot;
    this.release(slot);
    throw tooManyStreams;
  }

  release(slot: number): void {
    Atomics.sub(this.#counts, slot, 1);
  }
}

const tooManyStreams = new PlantStoreError(
  "rate-limited",
  `This token has ${streamsPerToken} streams open, which is the limit. Close one of them first.`,
  { limit: "streams" },
);
