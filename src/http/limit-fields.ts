/** What callers are told of their limits, as of the IETF's draft of RateLimit fields (version 10). */
import type { UsageLimits } from "../domain/limits.ts";
import type { RateLimiter } from "../limiting/rate-limiter.ts";

/** `RateLimit-Policy`, the same in every answer; absent if nothing is limited. */
export function renderPolicy({ rate, plantsMax }: UsageLimits): string | undefined {
  const policies: string[] = [];
  if (rate) policies.push(`"requests";q=${rate.requests};w=${rate.windowSeconds}`);
  if (plantsMax !== undefined) policies.push(`"plants";q=${plantsMax};qu="plants"`);
  return policies.length === 0 ? undefined : policies.join(", ");
}

/** `RateLimit` after the request that found this level. */
export function renderRate(limiter: RateLimiter, level: number): string {
  const { remaining, nextSeconds } = limiter.allowance(level);
  return `"requests";r=${remaining};t=${nextSeconds}`;
}

/** `RateLimit` of a garden that is full. How much room others have is not counted for every answer. */
export const noRoom = '"plants";r=0';
