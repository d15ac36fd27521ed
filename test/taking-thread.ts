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
  /** By the real clock; else time stands still, and no bucket empties. */
  readonly isLive?: boolean;
}

/** Returns how many passed. */
self.onmessage = ({ data }: MessageEvent<TakingOrder>) => {
  const { limit, buckets, gate, threads, requests, isLive } = data;
  const now = isLive ? undefined : () => 0;
  const limiter = new RateLimiter(limit, buckets, now);
  const caller = { credential: "a", user: "a", garden: "a", scope: "write" } as const;
  Atomics.add(gate, 0, 1);
  while (Atomics.load(gate, 0) < threads);
  let passed = 0;
  for (let sent = 0; sent < requests; sent++) if (limiter.permits(limiter.take(caller))) passed++;
  self.postMessage(passed);
};
