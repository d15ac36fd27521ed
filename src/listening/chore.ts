/** What happens beside requests, again and again. */
import type { Log } from "../log.ts";

/** Never twice at once; a failure is logged and tried again. Hands back what ends it. */
export function startChore(
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
