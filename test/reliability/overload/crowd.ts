/** Many clients at once: each sends its next request when it has a response. */
import { KeptConnection } from "../kept-connection.ts";

export interface CrowdOrder {
  readonly port: number;
  /** Sent in turn. */
  readonly requests: readonly string[];
  readonly clients: number;
  readonly durationMs: number;
  /** How long a refused client waits. */
  readonly pauseMs: number;
}

const deadlineMs = 1_000;
/** The kernel's queue of connections that nobody has accepted yet is short. */
const arrivalsAtOnce = 50;
const arrivalsApartMs = 30;

/** Returns how many 2xx came in time, and how many responses of each status; 0 is none. */
export async function sendCrowd({ port, requests, clients, durationMs, pauseMs }: CrowdOrder) {
  const statuses: Record<number, number> = {};
  let good = 0;
  const endsAtMs = performance.now() + durationMs;
  async function runClient(): Promise<void> {
    let connection: KeptConnection | undefined;
    for (let turn = 0; performance.now() < endsAtMs; turn++) {
      const dueAtMs = performance.now() + deadlineMs;
      let status = 0;
      try {
        if (!connection || connection.isOver) {
          connection = await KeptConnection.open({ port, isSecure: false });
        }
        status = (await connection.ask(requests[turn % requests.length] as string)).status;
      } catch {
        connection = undefined;
      }
      statuses[status] = (statuses[status] ?? 0) + 1;
      if ((status === 200 || status === 201) && performance.now() <= dueAtMs) good++;
      if (status === 503) await Bun.sleep(Math.min(pauseMs, endsAtMs - performance.now()));
    }
    connection?.close();
  }
  const running: Promise<void>[] = [];
  while (running.length < clients) {
    running.push(runClient());
    if (running.length % arrivalsAtOnce === 0) await Bun.sleep(arrivalsApartMs);
  }
  await Promise.all(running);
  return { good, statuses };
}
