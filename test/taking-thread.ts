/// <reference lib="webworker" />
/** A thread that makes requests against a shared rate limit as fast as it can. */
import { type BucketMemory, type RateLimit, RateLimiter } from "../src/http/rate-limiter.ts";

declare const self: Worker;

export interface TakingOrder {
  readonly limit: RateLimit;
  readonly buckets: BucketMemory;
  /** Counts the threads that are ready, so that all start together. */
  readonly gate: Int32Array;
  readonly threads: number;
  readonly requests: number;
}

/** Returns how many passed. */
self.onmessage = ({ data }: MessageEvent<TakingOrder>) => {
  const { limit, buckets, gate, threads, requests } = data;
  // Time stands still, and no bucket empties.
  const limiter = new RateLimiter(limit, buckets, () => 0);
  const caller = { credential: "a", user: "a", garden: "a", scope: "write" } as const;
  Atomics.add(gate, 0, 1);
  while (Atomics.load(gate, 0) < threads);
  let passed = 0;
  for (let sent = 0; sent < requests; sent++) if (limiter.permits(limiter.take(caller))) passed++;
  self.postMessage(passed);
};
