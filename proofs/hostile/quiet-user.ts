/** A user who calls all the time, each kind of call over connections of its own, and measures. */
import { KeptConnection, writeRequest } from "../kept-connection.ts";

export const calls = ["healthz", "get", "create"] as const;
export type CallName = (typeof calls)[number];

export interface Seen {
  readonly times: Readonly<Record<CallName, { medianMs: number; worstMs: number }>>;
  /** How many responses had each status; 0 is no response. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Of each kind, so that every thread and instance has some. */
const connectionsCount = 4;
const pauseMs = 40;
const warmUpMs = 500;

/** Calls for a while before anything is measured. `stop` returns what was seen. */
export async function startQuietUser(
  ports: readonly number[],
  token: string,
  body = '{"name":"Fern"}',
): Promise<{ stop(): Promise<Seen> }> {
  const requests: Record<CallName, string> = {
    healthz: writeRequest("GET /healthz", { token }),
    get: writeRequest("GET /plants/1", { token }),
    create: writeRequest("POST /plants", { token, body }),
  };
  const times: Record<CallName, number[]> = { healthz: [], get: [], create: [] };
  let statuses: Record<string, number> = {};
  let isOver = false;

  async function call(port: number, name: CallName): Promise<void> {
    let connection: KeptConnection | undefined;
    while (!isOver) {
      const startedAtMs = performance.now();
      let status = 0;
      try {
        if (!connection || connection.isOver) connection = await KeptConnection.open({ port });
        ({ status } = await connection.ask(requests[name]));
      } catch {
        connection?.close();
        connection = undefined;
      }
      times[name].push(performance.now() - startedAtMs);
      statuses[status] = (statuses[status] ?? 0) + 1;
      await Bun.sleep(pauseMs);
    }
    connection?.close();
  }

  const first = await KeptConnection.open({ port: ports[0] as number });
  await first.ask(writeRequest("PUT /plants/1", { token, body }));
  first.close();
  const calling = Array.from({ length: connectionsCount }, (_, each) =>
    calls.map((name) => call(ports[each % ports.length] as number, name)),
  ).flat();
  await Bun.sleep(warmUpMs);
  for (const name of calls) times[name] = [];
  statuses = {};
  return {
    async stop() {
      isOver = true;
      await Promise.all(calling);
      const { healthz, get, create } = times;
      const summaries = { healthz: summarize(healthz), get: summarize(get) };
      return { times: { ...summaries, create: summarize(create) }, statuses };
    },
  };
}

/**
 * The median is by time: half of the time, calls took longer. A plain median would count a stall of
 * a second as one slow call among hundreds.
 */
function summarize(times: readonly number[]) {
  const sorted = times.toSorted((a, b) => a - b);
  let leftMs = sorted.reduce((sum, ms) => sum + ms + pauseMs, 0) / 2;
  const medianMs = sorted.find((ms) => {
    leftMs -= ms + pauseMs;
    return leftMs <= 0;
  });
  return { medianMs: medianMs ?? 0, worstMs: sorted.at(-1) ?? 0 };
}
