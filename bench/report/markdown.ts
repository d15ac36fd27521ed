/** The one table of a run, as Markdown, with what is behind it. */
import type { ContenderName } from "../contenders/contender.ts";
import { type Scenario, scenarios } from "../scenarios.ts";
import { findCell, type Results } from "./results.ts";
import {
  findMemoryVerdicts,
  findStartVerdicts,
  findVerdicts,
  nameOf,
  type Verdict,
} from "./targets.ts";

export function renderReport(results: Results): string {
  const headline = renderHeadline(results);
  const opening = headline === undefined ? [] : [headline, ""];
  return [...opening, renderTable(tableOf(results)), "", ...describeRun(results), ""].join("\n");
}

/**
 * What README.md says, too. The peers run on one thread and cache nothing, so our figures for that
 * are in the same sentences. Absent if a run didn't measure all of it.
 */
export function renderHeadline(results: Results): string | undefined {
  let isComplete = true;
  const rate = (scenario: string, name: ContenderName) => {
    const perSecond = findCell(results, scenario, name)?.perSecond;
    if (perSecond === undefined) isComplete = false;
    return whole(Math.round((perSecond ?? 0) / 100) * 100);
  };
  const [version] = results.contenders[0]?.version.split(" ") ?? [];
  const text =
    `In one run of \`npm run bench\`, on ${results.machine.cores} cores shared with the load ` +
    `generator, version ${version} created ${rate("create", "plant-store")} durable plants per ` +
    `second, or ${rate("create", "one-thread")} on one thread, where Hono with SQLite on the same ` +
    `runtime created ${rate("create", "hono")} and Fastify with better-sqlite3 ` +
    `${rate("create", "fastify")}. It listed ${rate("list", "plant-store")} cached pages of 20 ` +
    `plants per second and ${rate("list-anywhere", "plant-store")} uncached ones, or ` +
    `${rate("list", "one-thread")} and ${rate("list-anywhere", "one-thread")} on one thread, where ` +
    `Hono listed ${rate("list-anywhere", "hono")} and Fastify ${rate("list-anywhere", "fastify")}.`;
  return isComplete ? text : undefined;
}

/** "one-insert" has no column: its ratio is beside the target. */
const columns: readonly ContenderName[] = [
  "plant-store",
  "one-thread",
  "without-events",
  "previous",
  "bare",
  "hono",
  "elysia",
  "fastify",
];

function tableOf(results: Results): string[][] {
  const known = columns.filter((name) => results.contenders.some((one) => one.name === name));
  const [own = "", ...others] = known.map((name) => nameOf(results, name));
  const header = ["responses per second", own, "p99 ms", ...others, "ratios and targets"];
  const measured = scenarios.filter(({ name }) => findCell(results, name, "plant-store"));
  const rows = measured.map((scenario) => {
    const [first = "", ...rest] = known.map((name) => rateOf(results, scenario, name));
    const p99Ms = findCell(results, scenario.name, "plant-store")?.p99Ms.toFixed(1) ?? "";
    return [scenario.title, first, p99Ms, ...rest, describe(findVerdicts(results, scenario.name))];
  });
  const plain = (title: string, values: readonly string[], verdicts: readonly Verdict[] = []) => {
    const [first = "", ...rest] = values;
    rows.push([
      title,
      first,
      "",
      ...rest.concat(Array(known.length - values.length).fill("")),
      describe(verdicts),
    ]);
  };
  const creating = known.map((name) => findCell(results, "create", name)?.residentMegabytes);
  if (creating[0]) plain("memory while creating, MB", creating.map(whole));
  const { memory, start } = results;
  if (memory) {
    const creates = `memory after ${memory.creates.toLocaleString("en")} creates, MB`;
    const idle = `with ${memory.idleConnections.toLocaleString("en")} idle connections, MB`;
    plain(creates, [whole(memory.afterMegabytes)], findMemoryVerdicts(memory.afterMegabytes));
    plain(idle, [whole(memory.idleMegabytes)], findMemoryVerdicts(memory.idleMegabytes));
  }
  if (start) {
    const find = (name: string) => start.rows.find((row) => row.contender === name);
    const times = known.map((name) => whole(find(name)?.startMs));
    plain("start to first response, ms", times, findStartVerdicts(results));
    plain(
      "memory after the start, MB",
      known.map((name) => whole(find(name)?.residentMegabytes)),
    );
    plain("the executable: start, ms", [whole(find("executable")?.startMs)]);
    plain("the executable: memory, MB", [whole(find("executable")?.residentMegabytes)]);
  }
  return [header, ...rows];
}

function rateOf(results: Results, scenario: Scenario, name: ContenderName): string {
  const cell = findCell(results, scenario.name, name);
  if (!cell) return isKeyed(scenario) && isPeer(name) ? "no keys" : "";
  const rate = cell.perSecond < 100 ? cell.perSecond.toFixed(1) : whole(cell.perSecond);
  return cell.faults > 0 ? `${rate} (${cell.faults} failed)` : rate;
}

function isKeyed({ engine, mix, contenders }: Scenario): boolean {
  return engine === "sqlite" && !contenders && mix.some(({ action }) => action === "create-key7");
}

function isPeer(name: ContenderName): boolean {
  return name === "hono" || name === "elysia" || name === "fastify";
}

function describe(verdicts: readonly Verdict[]): string {
  const describeOne = ({ measured, target, isMet }: Verdict) => {
    if (target === undefined) return measured;
    return isMet ? `${measured} (${target})` : `**${measured}, missed: ${target}**`;
  };
  return verdicts.map(describeOne).join(", ");
}

function whole(value: number | undefined): string {
  return value === undefined ? "" : Math.round(value).toLocaleString("en");
}

/** Beyond this, of one core, don't rely on the ratios of a run. */
const disturbanceMax = 0.1;

function describeRun(results: Results): string[] {
  const { startedAt, durationSeconds, machine, postgres, contenders, cells, timing } = results;
  const disturbed = cells.filter(({ othersCpuShare }) => othersCpuShare > disturbanceMax);
  const most = Math.round(Math.max(0, ...cells.map((cell) => cell.othersCpuShare)) * 100);
  const lines = [
    `A run of ${Math.round(durationSeconds / 60)} minutes on ${startedAt.slice(0, 10)}: medians of ` +
      `${timing.headlineRounds} or ${timing.otherRounds} rounds of ${timing.roundSeconds} s, ` +
      `interleaved. ${machine.processor} (${machine.architecture}), ${machine.cores} cores, ` +
      `${machine.memoryGigabytes} GB, Linux ${machine.kernel}; wrk ${machine.wrk} on the same ` +
      `cores, 64 connections where nothing else is said${postgres ? `; PostgreSQL ${postgres}` : ""}.`,
    "",
    ...contenders.map(
      ({ name, version, summary }) => `- **${nameOf(results, name)}** ${version}: ${summary}`,
    ),
  ];
  if (machine.isDataInMemory) {
    lines.push("", "The data was in memory, where a sync costs nothing: set TMPDIR to a disk.");
  }
  if (disturbed.length > 0) {
    lines.push(
      "",
      `**Disturbed:** in ${disturbed.length} of ${cells.length} measurements other processes took ` +
        `more than ${disturbanceMax * 100} % of a core (at most ${most} %). Repeat it on a quiet ` +
        "machine before you rely on a ratio.",
    );
  }
  return lines;
}

/** The first row is the header. The columns line up at a terminal, too. */
function renderTable(rows: readonly (readonly string[])[]): string {
  const [header = [], ...body] = rows;
  const last = header.length - 1;
  const isLeft = (column: number) => column === 0 || column === last;
  const widths = header.map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    `| ${widths
      .map((width, column) => {
        const text = row[column] ?? "";
        if (column === last) return text;
        return column === 0 ? text.padEnd(width) : text.padStart(width);
      })
      .join(" | ")} |`;
  const rule = widths.map((width, column) =>
    isLeft(column) ? "-".repeat(column === last ? 3 : width) : `${"-".repeat(width - 1)}:`,
  );
  return [line(header), `| ${rule.join(" | ")} |`, ...body.map(line)].join("\n");
}
