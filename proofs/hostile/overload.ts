/**
 * Overload: finds the highest throughput in time, and offers ten times as many clients, which wait
 * as `Retry-After` says. Most of the throughput is kept.
 */
import { startService } from "../../test/end-to-end/running-service.ts";
import { makePlace } from "../audited-store.ts";
import { writeRequest } from "../kept-connection.ts";
import { flood, sendCrowd, stallPostgres, stallSqlite } from "./flood.ts";

const peakMs = 4_000;
const overloadMs = 10_000;
const clientsTried = [16, 64, 256];
const keptShareMin = 0.8;
const plant = { name: "Monstera deliciosa", tag: "office" };
const bulk = JSON.stringify(Array.from({ length: 3_000 }, () => plant));

const create = (token: string) => writeRequest("POST /plants", { token, body: '{"name":"Fern"}' });
const list = (token: string, query: string) => writeRequest(`GET /plants?${query}`, { token });
/** So many that caching them doesn't help. */
const pages = Array.from({ length: 997 }, (_, after) => `limit=1000&after=${after}`);
const kinds: [what: string, make: (token: string) => string[]][] = [
  ["creates", (token) => [create(token)]],
  ["lists of 1,000", (token) => pages.map((query) => list(token, query))],
  ["creates and lists of 20", (token) => [create(token), list(token, "limit=20")]],
];
const scenarios = (["sqlite", "postgres"] as const).flatMap((engine) =>
  kinds.map((kind) => [engine, ...kind] as const),
);

/** Returns what went wrong, and prints what was kept. */
export async function overload(): Promise<string[]> {
  const faults: string[] = [];
  for (const [engine, what, make] of scenarios) {
    await using place = await makePlace(engine);
    await using service = await startService({ database: place.database });
    const { port, token } = service;
    await service.call("POST /plants/bulk", { body: bulk });
    const send = async (clients: number, durationMs: number, pauseMs: number) => {
      const order = { port, requests: make(token), clients, durationMs, pauseMs };
      const { good, statuses } = await sendCrowd(order);
      return { clients, statuses, perSecond: (good * 1_000) / durationMs };
    };
    let peak = await send(64, peakMs, 0);
    for (const clients of clientsTried) {
      const measured = await send(clients, peakMs, 0);
      if (measured.perSecond > peak.perSecond) peak = measured;
    }
    const { statuses, perSecond } = await send(10 * peak.clients, overloadMs, 1_000);
    const share = perSecond / peak.perSecond;
    const { 200: _, 201: __, 503: ___, 0: ____, ...others } = statuses;
    if (share < keptShareMin) faults.push(`${what} on ${engine}: ${share} of the peak is kept`);
    if (Object.keys(others).length > 0) faults.push(`other responses: ${JSON.stringify(others)}`);
    process.stdout.write(`${what} on ${engine}: ${Math.round(share * 100)} % of the peak\n`);
  }
  for (const [engine, stall] of [
    ["sqlite", stallSqlite],
    ["postgres", stallPostgres],
  ] as const) {
    await using place = await makePlace(engine);
    const { database } = place;
    await using service = await startService({ args: ["--threads", "1"], database });
    const found = await flood(service, () => stall(database));
    faults.push(...found.map((fault) => `creates on a locked ${engine}: ${fault}`));
  }
  return faults;
}
