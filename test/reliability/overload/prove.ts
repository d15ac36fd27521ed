/**
 * `npm run prove:overload [scenarios] [first]`: finds the most that the service answers in time,
 * offers ten times as much in three ways, and prints a table. Where the processor is the limit, to
 * read and refuse the others takes some of it, and so does the crowd on a machine with few of them:
 * so it is also told which part of the service's processor time was useful.
 */
import type { RunningService } from "../../end-to-end/running-service.ts";
import { prove, type Trial } from "../proof.ts";
import { type CrowdOrder, type CrowdReport, sendCrowd } from "./crowd.ts";
import { renderList, residentBytes } from "./flood.ts";
import { prepare, type Scenario, scenarios } from "./scenarios.ts";

const times = 10;
const deadlineMs = 1_000;
const timeoutMs = 2_000;
const peakMs = 4_000;
const overloadMs = 10_000;
/** What the refused are told to wait. */
const retryAfterMs = 1_000;
const clientsTried = [16, 64, 256];
/** Below the number of open files that most systems allow. */
const connectionsMax = 8_000;
const keptShareMin = 0.8;
/** However dear it is to read and refuse the others. */
const keptShareFloor = 0.5;
const calmAnswers = 20;
const recoveryMsMax = 5_000;

interface Measured extends CrowdReport {
  readonly goodPerSecond: number;
  readonly serviceCpuSeconds: number;
  readonly residentMegabytes: number;
}

async function measure(
  service: RunningService,
  order: Omit<CrowdOrder, "port">,
): Promise<Measured> {
  const cpuBefore = await readCpuSeconds(service);
  const report = await sendCrowd({ ...order, port: service.port });
  const serviceCpuSeconds = (await readCpuSeconds(service)) - cpuBefore;
  return {
    ...report,
    goodPerSecond: report.good / report.seconds,
    serviceCpuSeconds,
    residentMegabytes: residentBytes(service.pid) / 2 ** 20,
  };
}

async function readCpuSeconds(service: RunningService): Promise<number> {
  const metrics = await (await service.call("GET /metrics")).text();
  return Number(/^process_cpu_seconds_total (\S+)/m.exec(metrics)?.[1]);
}

/** Processor seconds of the service that an answer takes. */
interface Prices {
  readonly good: number;
  /** As that of a bad token, which is nothing but what the runtime takes for any answer. */
  readonly refusal: number;
}

async function findPrices(service: RunningService, peak: Measured): Promise<Prices> {
  const requests = [renderList("nobody", "limit=1")];
  const usual = { deadlineMs, timeoutMs, durationMs: peakMs, connectionsMax: 64 };
  const { others, serviceCpuSeconds } = await measure(service, { ...usual, requests });
  return { good: peak.serviceCpuSeconds / peak.good, refusal: serviceCpuSeconds / others };
}

/** The part of its processor time that went into good answers, and into refusals at their price. */
function usefulShare({ good, refused, serviceCpuSeconds }: Measured, prices: Prices): number {
  return (good * prices.good + refused * prices.refusal) / serviceCpuSeconds;
}

/** How long it takes until all is answered in time again; no longer is waited than it may take. */
async function recover(service: RunningService): Promise<number> {
  const startedAtMs = performance.now();
  for (let answers = 0; answers < calmAnswers; answers++) {
    const askedAtMs = performance.now();
    if (askedAtMs - startedAtMs > recoveryMsMax) break;
    const { ok } = await service.call("POST /plants", { body: '{"name":"Fern"}' });
    if (!ok || performance.now() - askedAtMs > deadlineMs) answers = -1;
  }
  return performance.now() - startedAtMs;
}

const columns = [12, 28, 30, 8, 8, 9, 9, 8, 8, 12, 8, 8];

function row(...cells: readonly (string | number)[]): void {
  const shown = cells.map((cell, index) => {
    const text = typeof cell === "number" ? Math.round(cell).toLocaleString("en") : cell;
    return index < 3 ? text.padEnd(columns[index] ?? 0) : text.padStart(columns[index] ?? 0);
  });
  process.stdout.write(`${shown.join("")}\n`);
}

function rowOf(
  { engine, name }: Scenario,
  load: string,
  measured: Measured,
  peak: Measured,
  prices: Prices,
): void {
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  row(
    engine,
    name,
    load,
    measured.sent / measured.seconds,
    measured.goodPerSecond,
    percent(measured.goodPerSecond / peak.goodPerSecond),
    percent(usefulShare(measured, prices)),
    measured.refused / measured.seconds,
    (measured.late + measured.timeouts + measured.lost) / measured.seconds,
    `${measured.goodMs.p50}/${measured.goodMs.p99}`,
    measured.residentMegabytes,
    percent(measured.cpuSeconds / measured.seconds),
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
  const prices = await findPrices(service, peak);
  rowOf(scenario, `${clients} clients`, peak, peak, prices);

  const many = { ...usual, durationMs: overloadMs, connectionsMax: times * clients };
  const arrivalsPerSecond = Math.ceil(times * peak.goodPerSecond);
  const loads: Record<string, Omit<CrowdOrder, "port">> = {
    [`${times * clients} clients that wait`]: { ...many, pauseMs: retryAfterMs },
    [`${times * clients} clients that do not`]: many,
    [`${arrivalsPerSecond} arrivals a second`]: { ...many, arrivalsPerSecond, connectionsMax },
  };
  const faults: string[] = [];
  const figures: Record<string, number> = {};
  for (const [load, order] of Object.entries(loads)) {
    const measured = await measure(service, order);
    rowOf(scenario, load, measured, peak, prices);
    const where = `${scenario.engine}, ${scenario.name}, ${load}`;
    const kept = measured.goodPerSecond / peak.goodPerSecond;
    // A service that refuses everybody, or idles, makes good use of its processor time, too. Only
    // where nobody waits as told do refusals take much of it.
    const isDear = order.pauseMs === undefined && kept >= keptShareFloor;
    const keptShare = isDear ? Math.max(kept, usefulShare(measured, prices)) : kept;
    if (keptShare < keptShareMin) faults.push(`${where}: too little is kept`);
    if (measured.refusedBare > 0) faults.push(`${where}: refused without Retry-After`);
    if (measured.others > 0) faults.push(`${where}: ${measured.others} other answers`);
    const recoveredMs = await recover(service);
    if (recoveredMs > recoveryMsMax) faults.push(`${where}: recovered after ${recoveredMs} ms`);
    figures.good = (figures.good ?? 0) + measured.good;
    figures.refused = (figures.refused ?? 0) + measured.refused;
    figures["ms to recover"] = (figures["ms to recover"] ?? 0) + Math.round(recoveredMs);
  }
  return { faults, figures };
}

row(
  "engine",
  "asked for",
  "load",
  "sent/s",
  "good/s",
  "of peak",
  "useful",
  "refused",
  "lost",
  "p50/p99 ms",
  "MiB",
  "crowd",
);
await prove({ name: "overload", trials: "scenarios", count: scenarios.length, run });
