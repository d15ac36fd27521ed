/** What the service does beside requests, again and again, and how often. */
import type { Log } from "../log.ts";

export const defaultIntervals = {
  /** A revocation must hold within 5 seconds; this leaves room for a slow poll. */
  refreshTokensMs: 1_000,
  noteTokenUsesMs: 60_000,
  /** A withdrawn key is accepted no longer than this, while its issuer can be asked. */
  refreshIssuerKeysMs: 60_000,
  forgetIdempotencyKeysMs: 60_000,
  /** How long processes on one storage limit rates alone before they learn of each other. */
  exchangeRatesMs: 1_000,
  forgetRatesMs: 60_000,
};

/** How often each task runs; tests choose shorter ones. */
export type Intervals = Readonly<typeof defaultIntervals>;

/** Never runs twice at once; a failure is logged and tried again. Call the result to end it. */
export function startPeriodicTask(
  name: string,
  everyMs: number,
  log: Log,
  run: () => Promise<void>,
  first: "later" | "at once" = "later",
): () => void {
  let isRunning = false;
  async function runOnce(): Promise<void> {
    if (isRunning) return;
    isRunning = true;
    await run().catch((error) => log.event("warn", `${name} failed`, { error }));
    isRunning = false;
  }
  if (first === "at once") runOnce();
  const timer = setInterval(runOnce, everyMs);
  return () => clearInterval(timer);
}
