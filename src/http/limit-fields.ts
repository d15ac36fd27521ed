/**
 * What callers are told of their limits, as of the IETF's draft of RateLimit fields (version 10).
 */
import type { RateLimiter, UsageLimits } from "../rate-limit/rate-limiter.ts";

/**
 * `RateLimit` of a garden that is full. How much room others have is not counted for every answer.
 */
export const noRoom = '"plants";r=0';

/**
 * Adds the fields to an answer; the level is what the request found, where requests are counted.
 */
export type TellLimits = (headers: Headers, level: number | undefined) => void;

/** Absent if nothing is limited. */
export function createTellLimits(
  { rate, plantsMax }: UsageLimits,
  limiter: RateLimiter | undefined,
): TellLimits | undefined {
  const policies: string[] = [];
  if (rate) policies.push(`"requests";q=${rate.requests};w=${rate.windowSeconds}`);
  if (plantsMax !== undefined) policies.push(`"plants";q=${plantsMax};qu="plants"`);
  if (policies.length === 0) return undefined;
  const policy = policies.join(", ");
  return (headers, level) => {
    headers.set("RateLimit-Policy", policy);
    if (!limiter || level === undefined) return;
    const { remaining, nextSeconds } = limiter.allowance(level);
    headers.append("RateLimit", `"requests";r=${remaining};t=${nextSeconds}`);
  };
}
