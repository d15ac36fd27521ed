/// <reference lib="webworker" />
/** A thread that pours into shared buckets as fast as it can, once all others are ready to. */
import type { RateLimit } from "../src/domain/limits.ts";
import { type BucketMemory, Buckets } from "../src/limiting/buckets.ts";

declare const self: Worker;

export interface PouringOrder {
  readonly limit: RateLimit;
  readonly memory: BucketMemory;
  /** Counts the threads that are ready. */
  readonly gate: Int32Array;
  readonly threads: number;
  readonly pours: number;
}

/** Answers how many fitted. Time stands still for it, so that nothing runs out meanwhile. */
self.onmessage = ({ data }: MessageEvent<PouringOrder>) => {
  const buckets = new Buckets(data.limit, data.memory, () => 0);
  Atomics.add(data.gate, 0, 1);
  while (Atomics.load(data.gate, 0) < data.threads);
  let fitted = 0;
  for (let pour = 0; pour < data.pours; pour++) {
    if (buckets.pour(7) <= buckets.capacity) fitted++;
  }
  self.postMessage(fitted);
};
