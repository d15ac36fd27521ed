/**
 * `npm run prove overload [scenarios] [first]`: finds the highest throughput in time, offers ten
 * times as much in three ways, and prints how much of the throughput is kept.
 */
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { makeDatabase, startPostgres } from "../../postgres-server.ts";
import { prove, type Trial } from "../proof.ts";
import { type CrowdOrder, type CrowdReport, sendCrowd } from "./crowd.ts";
import { renderCreate, renderList, residentBytes } from "./flood.ts";

interface Scenario {
  readonly name: string;
  readonly engine: "SQLite" | "PostgreSQL";
  readonly requests: (token: string) => readonly string[];
}

const times = 10;
const deadlineMs = 1_000;
const timeoutMs = 2_000;
const peakMs = 4_000;
const overloadMs = 10_000;
/** As `Retry-After` says. */
const retryAfterMs = 1_000;
const clientsTried = [16, 64, 256];
/** Below the number of open files that most systems allow. */
const connectionsMax = 8_000;
const keptShareMin = 0.8;
/** Of clients that ignore `Retry-After`: reading and refusing their requests takes CPU time. */
const impatientKeptShareMin = 0.5;
const calmResponses = 20;
const recoveryMsMax = 5_000;
const plantsCount = 3_000;
const pagePlants = 2_000;

const scenarios: readonly Scenario[] = (["SQLite", "PostgreSQL"] as const).flatMap((engine) => [
  { name: "creates", engine, requests: (token) => [renderCreate(token)] },
  { name: `lists of ${pagePlants}`, engine, requests: renderPages },
  {
    name: "creates and lists of 20",
    engine,
    requests: (token) => [renderCreate(token), renderList(token, "limit=20")],
  },
]);

/** So many different pages that caching them does not help. */
function renderPages(token: string): string[] {
  return Array.from({ length: 997 }, (_, after) =>
    renderList(token, `limit=${pagePlants}&after=${after}`),
  );
}

/** With some plants to list. PostgreSQL syncs its commits. */
async function prepare({ engine }: Scenario) {
  const server = engine === "PostgreSQL" ? await startPostgres() : undefined;
  const database = server && (await makeDatabase(server));
  const service = await startService(database ? { database: database.url } : {});
  for (let count = 0; count < plantsCount; count += 100) {
    const creates = Array.from({ length: 100 }, () =>
      service.call("POST /plants", { body: '{"name":"Monstera deliciosa","tag":"office"}' }),
    );
    await Promise.all(creates);
  }
  return {
    service,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await server?.stop();
    },
  };
}

interface Measured extends CrowdReport {
  readonly goodPerSecond: number;
  readonly residentMegabytes: number;
}

async function measure(
  service: RunningService,
  order: Omit<CrowdOrder, "port">,
): Promise<Measured> {
  const report = await sendCrowd({ ...order, port: service.port });
  return {
    ...report,
    goodPerSecond: report.good / report.seconds,
    residentMegabytes: residentBytes(service.pid) / 2 ** 20,
  };
}

/** How long it takes until requests are served in time again. */
async function recover(service: RunningService): Promise<number> {
  const startedAtMs = performance.now();
  for (let served = 0; served < calmResponses; served++) {
    const sentAtMs = performance.now();
    if (sentAtMs - startedAtMs > recoveryMsMax) break;
    const { ok } = await service.call("POST /plants", { body: '{"name":"Fern"}' });
    if (!ok || performance.now() - sentAtMs > deadlineMs) served = -1;
  }
  return performance.now() - startedAtMs;
}

const columns = [12, 28, 30, 8, 8, 9, 9, 8, 12, 8];

function row(...cells: readonly (string | number)[]): void {
  const shown = cells.map((cell, index) => {
    const text = typeof cell === "number" ? Math.round(cell).toLocaleString("en") : cell;
    return index < 3 ? text.padEnd(columns[index] ?? 0) : text.padStart(columns[index] ?? 0);
  });
  process.stdout.write(`${shown.join("")}\n`);
}

function rowOf({ engine, name }: Scenario, load: string, measured: Measured, peak: Measured): void {
  row(
    engine,
    name,
    load,
    measured.sent / measured.seconds,
    measured.goodPerSecond,
    `${Math.round((measured.goodPerSecond / peak.goodPerSecond) * 100)} %`,
    measured.refused / measured.seconds,
    (measured.late + measured.timeouts + measured.lost) / measured.seconds,
    `${measured.goodMs.p50}/${measured.goodMs.p99}`,
    measured.residentMegabytes,
  );
}

async function run(seed: number): Promise<Trial> {
  const scenario = scenarios[seed % scenarios.length] as Scenario;
  await using prepared = await prepare(scenario);
  const { service } = prepared;
  const requests = scenario.requests(service.token);
  const usual = { requests, deadlineMs, timeoutMs, durationMs: peakMs };
  await measure(service, { ...usual, connectionsMax: 64 });

  let clients = 0;
  let peak: Measured | undefined;
  for (const connections of clientsTried) {
    const measured = await measure(service, { ...usual, connectionsMax: connections });
    if (peak && measured.goodPerSecond <= peak.goodPerSecond) continue;
    peak = measured;
    clients = connections;
  }
  if (!peak) throw new Error("Nothing was measured.");
  rowOf(scenario, `${clients} clients`, peak, peak);

  const many = { ...usual, durationMs: overloadMs, connectionsMax: times * clients };
  const arrivalsPerSecond = Math.ceil(times * peak.goodPerSecond);
  const loads: Record<string, Omit<CrowdOrder, "port">> = {
    [`${times * clients} clients that wait`]: { ...many, pauseMs: retryAfterMs },
    [`${times * clients} clients that do not`]: many,
    [`${arrivalsPerSecond} arrivals a second`]: { ...many, arrivalsPerSecond, connectionsMax },
  };
  const faults: string[] = [];
  const figures = { good: 0, refused: 0, "ms to recover": 0 };
  for (const [load, order] of Object.entries(loads)) {
    const measured = await measure(service, order);
    rowOf(scenario, load, measured, peak);
    const where = `${scenario.engine}, ${scenario.name}, ${load}`;
    const shareMin = order.pauseMs === undefined ? impatientKeptShareMin : keptShareMin;
    if (measured.goodPerSecond < shareMin * peak.goodPerSecond) {
      faults.push(`${where}: too little is kept`);
    }
    if (measured.refusedBare > 0) faults.push(`${where}: refused without Retry-After`);
    if (measured.others > 0) faults.push(`${where}: ${measured.others} other responses`);
    const recoveredMs = await recover(service);
    if (recoveredMs > recoveryMsMax) faults.push(`${where}: recovered after ${recoveredMs} ms`);
    figures.good += measured.good;
    figures.refused += measured.refused;
    figures["ms to recover"] += Math.round(recoveredMs);
  }
  return { faults, figures };
}

row(
  "engine",
  "requests",
  "load",
  "sent/s",
  "good/s",
  "of peak",
  "refused",
  "lost",
  "p50/p99",
  "MiB",
);
await prove({ name: "overload", trials: "scenarios", count: scenarios.length, run });
