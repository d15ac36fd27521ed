/** Free ports, and waiting until a server that was just started responds. */
import type { Child } from "./children.ts";

export const loopback = "127.0.0.1";
const deadlineMs = 60_000;

export function findFreePort(): number {
  const listener = Bun.listen({ hostname: loopback, port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** Returns the milliseconds until the first 200. Fails if the process ends or stays silent. */
export async function waitUntilReady(
  child: Child,
  host: string,
  path: string,
  everyMs = 5,
): Promise<number> {
  const startedAtMs = performance.now();
  for (;;) {
    const elapsedMs = performance.now() - startedAtMs;
    if (child.hasExited()) throw new Error(`The server at ${host} ended before it responded.`);
    if (elapsedMs > deadlineMs) throw new Error(`The server at ${host} didn't respond in time.`);
    if (await isReady(host, path)) return performance.now() - startedAtMs;
    await Bun.sleep(everyMs);
  }
}

async function isReady(host: string, path: string): Promise<boolean> {
  try {
    const response = await fetch(`http://${host}${path}`, { keepalive: false });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    // Nobody listens yet.
    return false;
  }
}
