/** What callers may use: how many requests in how long a time, and how many plants. */

/** Up to `requests` at once, and then one more every `windowSeconds / requests`. */
export interface RateLimit {
  readonly requests: number;
  readonly windowSeconds: number;
}

export interface UsageLimits {
  /** For each credential. Absent: as many requests as they like. */
  readonly rate: RateLimit | undefined;
  /** For each garden. Absent: as many plants as they like. */
  readonly plantsMax: number | undefined;
}

export const unlimited: UsageLimits = { rate: undefined, plantsMax: undefined };
