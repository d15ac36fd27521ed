/**
 * Tells the storage what this process let through, and learns from it what all others did. What
 * grains and levels are is said in buckets.ts; the storage, which knows no limit, has times.
 */
import type { RateLimit } from "../domain/limits.ts";
import type { BucketStorage } from "../domain/storage.ts";
import { type BucketMemory, Buckets } from "./buckets.ts";

/**
 * Hands back what tells and learns once. If it fails, what it would have told is not told again:
 * for that while each process limits alone.
 */
export function createBucketExchange(
  limit: RateLimit,
  memory: BucketMemory,
  storage: BucketStorage,
): () => Promise<void> {
  const buckets = new Buckets(limit, memory);
  const grainMs = (limit.windowSeconds * 1_000) / buckets.capacity;
  return async () => {
    const pours = buckets.takePours();
    if (pours.length === 0) return;
    const levels = await storage.pour(
      pours.map(({ key, grains }) => ({ key, levelMs: grains * grainMs })),
    );
    for (const { key, levelMs } of levels) buckets.raise(key, Math.round(levelMs / grainMs));
  };
}
