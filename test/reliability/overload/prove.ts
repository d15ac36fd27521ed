/**
 * `npm run prove overload [scenarios] [first]`: finds the highest throughput in time, offers ten
 * times as many clients, and prints how much of the throughput is kept.
 */
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { makeDatabase, startPostgres } from "../../postgres-server.ts";
import { writeRequest } from "../kept-connection.ts";
import { residentMb } from "../process-growth.ts";
import { prove } from "../proof.ts";
import { renderCreate, sendCrowd } from "./crowd.ts";

const peakMs = 4_000;
const overloadMs = 10_000;
const clientsTried = [16, 64, 256];
const times = 10;
/** How much is kept, where clients wait as `Retry-After` says, and where they do not. */
const loads = [
  { what: "that wait", pauseMs: 1_000, keptShareMin: 0.8 },
  // Reading and refusing their requests takes CPU time.
  { what: "that do not", pauseMs: 0, keptShareMin: 0.5 },
];
const calmResponses = 20;
const recoveryMsMax = 5_000;
const bulk = '{"name":"Monstera deliciosa","tag":"office"}\n'.repeat(3_000);

const list = (token: string, query: string) => writeRequest(`GET /plants?${query}`, { token });
/** So many different pages that caching them does not help. */
const pages = (token: string) =>
  Array.from({ length: 997 }, (_, after) => list(token, `limit=2000&after=${after}`));

const scenarios = (["SQLite", "PostgreSQL"] as const).flatMap((engine) => [
  { engine, what: "creates", requests: (token: string) => [renderCreate(token)] },
  { engine, what: "lists of 2,000", requests: pages },
  {
    engine,
    what: "creates and lists of 20",
    requests: (token: string) => [renderCreate(token), list(token, "limit=20")],
  },
]);

/** PostgreSQL syncs its commits. */
const server = await startPostgres();

await prove({
  name: "overload",
  trials: "scenarios",
  count: scenarios.length,
  async run(seed) {
    const { engine, what, requests } = scenarios[seed % scenarios.length] as (typeof scenarios)[0];
    const database = engine === "PostgreSQL" ? (await makeDatabase(server)).url : undefined;
    await using service = await startService(database ? { database } : {});
    const headers = { "content-type": "application/jsonl" };
    await service.call("POST /plants/bulk", { headers, body: bulk });
    const send = async (clients: number, durationMs: number, pauseMs: number) => {
      const order = { port: service.port, requests: requests(service.token), clients };
      const report = await sendCrowd({ ...order, durationMs, pauseMs });
      return { ...report, clients, perSecond: (report.good * 1_000) / durationMs };
    };
    await send(64, peakMs, 0);
    let peak = { clients: 0, perSecond: 0 };
    for (const clients of clientsTried) {
      const measured = await send(clients, peakMs, 0);
      if (measured.perSecond > peak.perSecond) peak = measured;
    }
    const faults: string[] = [];
    const figures = { good: 0, refused: 0, "ms to recover": 0 };
    for (const { what: how, pauseMs, keptShareMin } of loads) {
      const { good, refused, others, late, lost, perSecond } = await send(
        times * peak.clients,
        overloadMs,
        pauseMs,
      );
      const share = perSecond / peak.perSecond;
      const where = `${engine}, ${what}, ${times * peak.clients} clients ${how}`;
      process.stdout.write(
        `${where}: ${Math.round(perSecond)} a second in time, ${Math.round(share * 100)} % of the ` +
          `peak; ${refused} refused, ${late} late, ${lost} lost; ${residentMb(service.pid)} MB\n`,
      );
      if (share < keptShareMin) faults.push(`${where}: too little is kept`);
      if (others > 0) faults.push(`${where}: ${others} other responses`);
      const recoveredMs = await recover(service);
      if (recoveredMs > recoveryMsMax) faults.push(`${where}: recovered after ${recoveredMs} ms`);
      figures.good += good;
      figures.refused += refused;
      figures["ms to recover"] += Math.round(recoveredMs);
    }
    return { faults, figures };
  },
  async conclude() {
    await server.stop();
    return undefined;
  },
});

/** How long it takes until requests are served in time again. */
async function recover(service: RunningService): Promise<number> {
  const startedAtMs = performance.now();
  for (let served = 0; served < calmResponses; served++) {
    const sentAtMs = performance.now();
    if (sentAtMs - startedAtMs > recoveryMsMax) break;
    const { ok } = await service.call("POST /plants", { body: '{"name":"Fern"}' });
    if (!ok || performance.now() - sentAtMs > 1_000) served = -1;
  }
  return performance.now() - startedAtMs;
}
