/** A user who calls all the time, each kind of call over connections of its own, and measures. */

import { KeptConnection, writeRequest } from "../../testing/kept-connection.ts";
import type { RunningService } from "../../testing/running-service.ts";

/** Of each kind, so that every thread and instance has some. */
const connectionsCount = 4;
const pauseMs = 40;
const warmUpMs = 500;

/**
 * Calls for a while before anything is measured. `stop` returns how long calls of each kind took,
 * and how many responses had each status; 0 is no response.
 */
export async function startQuietUser(
  services: readonly RunningService[],
  token: string,
  body = '{"name":"Fern"}',
) {
  const requests = {
    healthz: writeRequest("GET /healthz", { token }),
    get: writeRequest("GET /plants/1", { token }),
    create: writeRequest("POST /plants", { token, body }),
  };
  const times = { healthz: [] as number[], get: [] as number[], create: [] as number[] };
  const statuses: Record<string, number> = {};
  let [isWarm, isOver] = [false, false];

  async function call(address: RunningService, name: keyof typeof times): Promise<void> {
    let connection: KeptConnection | undefined;
    while (!isOver) {
      const startedAtMs = performance.now();
      if (!connection || connection.isOver) {
        connection = await KeptConnection.open(address).catch(() => undefined);
      }
      const response = await connection?.ask(requests[name]).catch(() => undefined);
      if (isWarm) {
        times[name].push(performance.now() - startedAtMs);
        const status = response?.status ?? 0;
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
      await Bun.sleep(pauseMs);
    }
    connection?.close();
  }

  await services[0]?.call("PUT /plants/1", { token, body });
  const calling = Array.from({ length: connectionsCount }, (_, each) => {
    const service = services[each % services.length] as RunningService;
    return [call(service, "healthz"), call(service, "get"), call(service, "create")];
  });
  await Bun.sleep(warmUpMs);
  isWarm = true;
  return {
    async stop() {
      isOver = true;
      await Promise.all(calling.flat());
      return { times, statuses };
    },
  };
}

/**
 * The median is by time: half of the time, calls took longer. A plain median would count a stall of
 * a second as one slow call among hundreds.
 */
export function summarize(times: readonly number[]) {
  const sorted = times.toSorted((a, b) => a - b);
  let leftMs = sorted.reduce((sum, ms) => sum + ms + pauseMs, 0) / 2;
  const medianMs = sorted.find((ms) => {
    leftMs -= ms + pauseMs;
    return leftMs <= 0;
  });
  return { medianMs: medianMs ?? 0, worstMs: sorted.at(-1) ?? 0 };
}
