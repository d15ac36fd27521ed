/** Writes the results down as Markdown. */

import { pairConnections } from "../parts/postgres.ts";
import { groupWrites } from "../parts/postgres-pool.ts";
import type { Round } from "../parts/seat.ts";
import { pacedReaders, readerConnections, writerConnections } from "../parts/slow-disk.ts";
import { listPromises, postgresRatio, ratioTo } from "./must-show.ts";
import type { Results } from "./results.ts";
import { renderTable } from "./text-table.ts";

export function renderMarkdown(results: Results): string {
  return `${[
    "# Benchmark results",
    renderRun(results),
    "## What must be shown",
    renderPromises(results),
    "## Side by side",
    renderScenarios(results),
    "## How cost grows",
    renderGrowth(results),
    "## Slow disk",
    renderSlowDisk(results),
    "## Memory and start",
    renderMemory(results),
    renderStart(results),
    "## PostgreSQL",
    renderPostgres(results),
  ].join("\n\n")}\n`;
}

export function renderPromises(results: Results): string {
  const verdict = (isMet: boolean | undefined) => (isMet ? "yes" : isMet === false ? "NO" : "–");
  const rows = listPromises(results).map(({ figure, target, measured, isMet }) => [
    figure,
    target,
    measured,
    verdict(isMet),
  ]);
  return renderTable(["figure", "target", "measured", "met"], rows);
}

function renderRun(results: Results): string {
  const { startedAt, durationSeconds, plan, machine, contenders, skipped } = results;
  const kind = plan.isQuick ? "A quick run" : "A run";
  const lines = [
    `${kind} of ${Math.round(durationSeconds)} s, started ${startedAt}. Machine: ${machine.processor} ` +
      `(${machine.architecture}), ${machine.cores} cores, ${machine.memoryGigabytes} GB, Linux ` +
      `${machine.kernel}; wrk ${machine.wrk} on the same cores. Load before the run: ` +
      `${machine.loadBefore.toFixed(2)}. Figures are medians of interleaved rounds.`,
    "",
    ...contenders.map(({ name, version, summary }) => `- **${name}** ${version}: ${summary}`),
    ...skipped.map(({ what, why }) => `- not measured: **${what}**: ${why}`),
  ];
  if (machine.isDataInMemory) {
    lines.push("- the data lay in memory, where a sync costs nothing: set TMPDIR to a disk");
  }
  const disturbance = describeDisturbance(results);
  if (disturbance !== undefined) lines.push("", disturbance);
  return lines.join("\n");
}

/** Beyond this, of one core, ratios of one run are not to be relied on. */
const disturbanceMax = 0.1;

/** Warns where other processes were at work during rounds; each contender is hit differently. */
export function describeDisturbance({ scenarios, growth, postgres }: Results): string | undefined {
  const medians = [...scenarios, ...growth, ...(postgres?.http ?? [])].map(
    ({ median }) => median.othersCpuShare,
  );
  const disturbed = medians.filter((share) => share > disturbanceMax);
  if (disturbed.length === 0) return undefined;
  const most = Math.round(Math.max(...disturbed) * 100);
  return (
    `**Disturbed:** in ${disturbed.length} of ${medians.length} measurements other processes took ` +
    `more than ${disturbanceMax * 100} % of a core (at most ${most} %). Repeat on a quiet machine ` +
    "before relying on any ratio."
  );
}

function renderScenarios(results: Results): string {
  const rows = results.scenarios.map((row) => [
    `${row.title}, ${row.connections} connections`,
    row.contender,
    ...renderRound(row.median),
    row.contender === "plant-store" ? "" : times(ratioTo(results, row.scenario, row.contender)),
  ]);
  const header = ["scenario", "contender", ...roundHeader, "Plant Store"];
  return `${renderTable(header, rows)}

CPU is of one core, by the contender alone; wrk takes from the same cores; "others" is what processes
took that have no part in this. Latencies are wrk's and count from the first request of a connection,
also where the server is slow to accept it: Node 20 accepts one connection per tick of its event loop,
which shows in its p99 and lets some connections wait for most of a round. "Plant
Store" is how many times as much Plant Store answered.`;
}

function renderGrowth({ growth }: Results): string {
  const rows = growth.map((row) => [
    `${row.action}, ${row.size.toLocaleString("en")} ${row.of}`,
    ...renderRound(row.median),
    times(row.costRatio),
  ]);
  return `${renderTable(["64 connections", ...roundHeader, "cost"], rows)}

"cost" is what an answer costs against the smallest size. In the growth of plants all are in one
garden, and lists are of 10 because the smallest garden has no more. With many gardens, each request
carries the next token; each garden has 20 plants.`;
}

function renderSlowDisk({ slowDisk }: Results): string {
  const rows = slowDisk.map((row) => [row.trial, row.contender, ...renderRound(row.median)]);
  return `${renderTable(["every fsync 5 ms longer", "contender", ...roundHeader], rows)}

${writerConnections} connections create. Lists are by ${readerConnections} connections that never rest, or paced: by \
${pacedReaders.connections} that pause ${pacedReaders.pauseMs} ms after each answer. Beside writers, "others" holds what the making of their
load took.`;
}

function renderMemory({ memory }: Results): string {
  if (!memory) return "Memory was not measured.";
  const creates = memory.creates.toLocaleString("en");
  const connections = memory.idleConnections.toLocaleString("en");
  return renderTable(
    ["Plant Store", "resident"],
    [
      ["after its start", megabytes(memory.startMegabytes)],
      [`at most, during ${creates} creates`, megabytes(memory.creatingMegabytes)],
      ["after them", megabytes(memory.afterCreatesMegabytes)],
      [`then with ${connections} idle connections`, megabytes(memory.idleMegabytes)],
    ],
  );
}

function renderStart({ start }: Results): string {
  const rows = start.map((row) => [row.contender, `${row.medianMs.toFixed(1)} ms`]);
  return renderTable(["start to first answer", "median"], rows);
}

function renderPostgres(results: Results): string {
  const found = results.postgres;
  if (!found) return "PostgreSQL was not measured.";
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const rows = found.http.map(({ trial, contender, median }) => [
    trial,
    contender,
    Math.round(median.answersPerSecond).toLocaleString("en"),
    median.p50Ms.toFixed(2),
    median.p99Ms.toFixed(2),
    median.instancesMicroseconds.toFixed(0),
    median.databaseMicroseconds.toFixed(0),
    median.loadMicroseconds.toFixed(0),
    String(median.faults),
    percent(median.othersCpuShare),
    contender === "plant-store" ? "" : times(postgresRatio(results, trial)),
  ]);
  const header = [
    ...["two instances", "contender", "answers/s", "p50 ms", "p99 ms", "CPU µs", "database µs"],
    ...["load µs", "faults", "others", "Plant Store"],
  ];
  const [single, groups] = found.pool;
  const ratio = single && groups && groups.plantsPerSecond / single.plantsPerSecond;
  const poolRows = found.pool.map((row) => [
    row.title,
    Math.round(row.plantsPerSecond).toLocaleString("en"),
    row === groups ? times(ratio) : "",
  ]);
  return `PostgreSQL ${found.version} with its defaults (fsync and synchronous_commit on), the database, both
instances and the load on the same cores. ${pairConnections} connections, half of them to each instance.
"one-insert" has the same runtime, threads, driver and pool, looks a token up once, checks little, and
stores each plant with one INSERT and an id from a sequence. The p50 and p99 are of the slower
instance; the µs are what an answer took of the processors, in the instances, the database and wrk.

${renderTable(header, rows)}

Without HTTP, through a pool of the same size, in one process; groups are of ${groupWrites} plants:

${renderTable(["the pool alone", "plants/s", "times"], poolRows)}`;
}

const roundHeader = ["answers/s", "p50 ms", "p99 ms", "CPU", "resident", "faults", "others"];

function renderRound(round: Round): string[] {
  const hasAnswers = round.answers > 0;
  const rate = round.answersPerSecond;
  return [
    rate < 100 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en"),
    hasAnswers ? round.p50Ms.toFixed(2) : "no answer",
    hasAnswers ? round.p99Ms.toFixed(2) : "no answer",
    `${Math.round(round.cpuShare * 100)} %`,
    megabytes(round.residentMegabytes),
    String(round.faults),
    `${Math.round(round.othersCpuShare * 100)} %`,
  ];
}

function megabytes(value: number): string {
  return `${value.toFixed(0)} MB`;
}

function times(ratio: number | undefined): string {
  if (ratio === undefined || !Number.isFinite(ratio)) return "–";
  return `${ratio.toFixed(ratio < 10 ? 2 : 0)} ×`;
}
