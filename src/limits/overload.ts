/**
 * What happens when more arrives than a thread can do. Whatever is short is shared out by garden:
 * each gets its turn, so a garden that sends a lot holds up only itself.
 *
 *     what is short                     who shares it out
 *     the event loop                    Scheduler (scheduler.ts), in slices
 *     memory for bodies and responses   ReservedBytes (reserved-bytes.ts)
 *     connections, searches, signatures Semaphore (semaphore.ts), by permits
 *     round trips for small reads       Batcher (batcher.ts), in batches
 *     commits                           GroupCommit (storage/group-commit.ts), in groups
 *     requests that a caller may send   RateLimiter (rate-limiter.ts), by configuration
 *
 * What waits is in a `FairQueue`. If its turn comes too late, it's refused, and nothing was changed.
 * Nobody has to wait longer for a response that says "try again". What has begun isn't refused for
 * being late: the next slice of a list or a bulk waits again. Only a garden that somebody else holds,
 * or a commit that is stuck, ends a bulk midway.
 */
import { PlantStoreError } from "../domain/errors.ts";
import type { MaybePromise } from "../shared/promises.ts";

/** Whatever has waited longer than this when its turn comes is late, and is refused. */
export const lateAfterMs = 500;

/** Made once: under overload there are tens of thousands a second. */
export const overloaded = new PlantStoreError(
  "unavailable",
  "The service cannot keep up right now. Nothing was changed; try again shortly.",
);

export function isOverload(error: unknown): boolean {
  return error === overloaded;
}

/** For the next step of what has begun. */
export async function withoutRefusal<Result>(step: () => MaybePromise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (!isOverload(error)) throw error;
    }
  }
}
