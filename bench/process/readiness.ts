/** Waits until a server that was just started answers, and measures how long that took. */
import type { Child } from "./children.ts";

const deadlineMs = 60_000;

/** Hands back the milliseconds until the first 200. Fails if the process ends or stays silent. */
export async function waitUntilReady(
  child: Child,
  host: string,
  path: string,
  everyMs = 5,
): Promise<number> {
  const startedAtMs = performance.now();
  for (;;) {
    const elapsedMs = performance.now() - startedAtMs;
    if (child.hasExited()) throw new Error(`The server at ${host} ended before it answered.`);
    if (elapsedMs > deadlineMs) throw new Error(`The server at ${host} did not answer in time.`);
    if (await answers(host, path)) return performance.now() - startedAtMs;
    await Bun.sleep(everyMs);
  }
}

async function answers(host: string, path: string): Promise<boolean> {
  try {
    const response = await fetch(`http://${host}${path}`, { keepalive: false });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    // Nobody listens yet.
    return false;
  }
}
