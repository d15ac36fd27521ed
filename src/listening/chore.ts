/** What happens beside requests, again and again. */
import type { Log } from "../log.ts";

/** Never twice at once; a failure is logged and tried again. Hands back what ends it. */
export function startChore(
  name: string,
  everyMs: number,
  log: Log,
  run: () => Promise<void>,
): () => void {
  let isRunning = false;
  const timer = setInterval(async () => {
    if (isRunning) return;
    isRunning = true;
    await run().catch((error) => log.event("warn", `${name} failed`, { error }));
    isRunning = false;
  }, everyMs);
  return () => clearInterval(timer);
}
