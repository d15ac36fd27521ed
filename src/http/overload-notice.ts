/**
 * Says how many requests were refused for overload: once a second, because a line for each would
 * add to it.
 */
import type { Log } from "../log.ts";

const gatherMs = 1_000;

/** To be called for each of them. */
export function createOverloadNotice(log: Log): () => void {
  let refused = 0;
  function say(): void {
    log.event("warn", "overloaded", { refused });
    refused = 0;
  }
  return () => {
    refused++;
    if (refused === 1) setTimeout(say, gatherMs).unref();
  };
}
