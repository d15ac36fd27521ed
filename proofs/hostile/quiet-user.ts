/** A user who calls all the time, each kind of call over connections of its own, and measures. */
import { KeptConnection, writeRequest } from "../kept-connection.ts";

export const calls = ["healthz", "get", "create"] as const;
export type CallName = (typeof calls)[number];

export interface Seen {
  readonly times: Readonly<Record<CallName, { medianMs: number; worstMs: number }>>;
  /** How many responses had each status; 0 is no response. */
  readonly statuses: Readonly<Record<string, number>>;
}

const callEveryMs = 10;
/** Of each kind, so that every thread and instance has some. */
const connectionsCount = 4;
const warmUpMs = 500;
const fern = '{"name":"Fern"}';

export class QuietUser {
  readonly #times: Record<CallName, number[]> = { healthz: [], get: [], create: [] };
  #statuses: Record<string, number> = {};
  #isOver = false;
  #calling: Promise<void>[] = [];

  /** Calls for a while before anything is measured. */
  static async start(ports: readonly number[], token: string, body = fern): Promise<QuietUser> {
    const user = new QuietUser();
    const connection = await KeptConnection.open({ port: ports[0] as number });
    await connection.ask(writeRequest("PUT /plants/1", { token, body }));
    connection.close();
    const requests: Record<CallName, string> = {
      healthz: writeRequest("GET /healthz", { token }),
      get: writeRequest("GET /plants/1", { token }),
      create: writeRequest("POST /plants", { token, body }),
    };
    for (let each = 0; each < connectionsCount; each++) {
      const port = ports[each % ports.length] as number;
      for (const name of calls) user.#calling.push(user.#call(port, name, requests[name]));
    }
    await Bun.sleep(warmUpMs);
    for (const name of calls) user.#times[name] = [];
    user.#statuses = {};
    return user;
  }

  /** Returns what was seen, once all calls have ended. */
  async stop(): Promise<Seen> {
    this.#isOver = true;
    await Promise.all(this.#calling);
    const { healthz, get, create } = this.#times;
    const times = {
      healthz: summarize(healthz),
      get: summarize(get),
      create: summarize(create),
    };
    return { times, statuses: this.#statuses };
  }

  async #call(port: number, name: CallName, request: string): Promise<void> {
    let connection: KeptConnection | undefined;
    while (!this.#isOver) {
      const startedAtMs = performance.now();
      let status = 0;
      try {
        if (!connection || connection.isOver) connection = await KeptConnection.open({ port });
        ({ status } = await connection.ask(request));
      } catch {
        connection?.close();
        connection = undefined;
      }
      this.#times[name].push(performance.now() - startedAtMs);
      this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
      await Bun.sleep(callEveryMs * connectionsCount);
    }
    connection?.close();
  }
}

/**
 * The median is by time: half of the time, calls took longer. A plain median would count a stall of
 * a second as one slow call among hundreds.
 */
function summarize(times: readonly number[]) {
  const sorted = times.toSorted((a, b) => a - b);
  const pauseMs = callEveryMs * connectionsCount;
  let leftMs = sorted.reduce((sum, ms) => sum + ms + pauseMs, 0) / 2;
  const medianMs = sorted.find((ms) => {
    leftMs -= ms + pauseMs;
    return leftMs <= 0;
  });
  return { medianMs: medianMs ?? 0, worstMs: sorted.at(-1) ?? 0 };
}
