/** The results of a run as Markdown: three sentences, one table, and what was measured where. */
import type { ContenderInfo } from "./contenders.ts";
import type { Cell } from "./measure.ts";
import { type Row, scenarios, startRows, type Timing } from "./scenarios.ts";

/** The form of results.json. */
export interface Results {
  readonly startedAt: string;
  readonly minutes: number;
  readonly timing: Timing;
  readonly cores: number;
  readonly machine: string;
  readonly contenders: readonly ContenderInfo[];
  readonly cells: readonly Cell[];
}

export function renderReport(results: Results): string {
  const headline = renderHeadline(results);
  const sentences = headline === undefined ? [] : [headline, ...renderStanding(results), ""];
  const tables = [...renderTable(results), "", ...renderCpuTable(results)];
  return [...sentences, ...tables, ...describeRun(results), ""].join("\n");
}

/**
 * README.md has these sentences, too, with at most two figures in each. Absent if the run didn't
 * measure all of it.
 */
export function renderHeadline(results: Results): string | undefined {
  const figures = ["create", "list-uncached"].flatMap((row) =>
    ["plant-store", "hono"].map((name) => findCell(results, row, name)?.value),
  );
  if (figures.includes(undefined)) return undefined;
  const [create, createHono, list, listHono] = figures.map(round);
  return [
    `It creates ${create} durable plants per second, where Hono with SQLite on the same runtime`,
    `creates ${createHono}. It reads ${list} uncached lists, where Hono reads ${listHono}.`,
    ...describeHonosLead(results),
    `(Version ${results.contenders[0]?.version}, on a machine with ${results.cores} cores.)`,
  ].join(" ");
}

/** Where Hono is ahead of us with as many threads, or with one client. */
function describeHonosLead(results: Results): string[] {
  const places = [
    { where: "On one thread", own: "one-thread", creates: "create", reads: "list-uncached" },
    {
      where: "With one client at a time",
      own: "plant-store",
      creates: "create-alone",
      reads: "list-alone",
    },
  ] as const;
  return places.flatMap(({ where, own, ...rows }) =>
    (["creates", "reads"] as const).flatMap((verb) => {
      const hono = findCell(results, rows[verb], "hono")?.value ?? 0;
      const ours = findCell(results, rows[verb], own)?.value ?? 0;
      return hono > ours
        ? [`${where}, Hono ${verb} ${round(hono)}, and Plant Store ${round(ours)}.`]
        : [];
    }),
  );
}

/** To hundreds. */
function round(figure = 0): string {
  return format(Math.round(figure / 100) * 100);
}

const rows: readonly Row[] = [...scenarios, ...startRows];
const peers = ["hono", "elysia", "fastify", "one-insert"];

/** Where Plant Store is ahead of the best peer, and where it isn't. */
function renderStanding(results: Results): string[] {
  const ahead: string[] = [];
  const behind: string[] = [];
  const behindOnOneThread: string[] = [];
  for (const { name, title, unit } of rows) {
    const others = peers.flatMap((peer) => findCell(results, name, peer)?.value ?? []);
    const own = findCell(results, name, "plant-store")?.value;
    if (own === undefined || others.length === 0) continue;
    const best = unit ? Math.min(...others) : Math.max(...others);
    const isBehind = (value: number) => (unit ? value > best : value < best);
    const describe = (value: number) => `${title} (${(value / best).toPrecision(3)} ×)`;
    (isBehind(own) ? behind : ahead).push(describe(own));
    const oneThread = findCell(results, name, "one-thread")?.value;
    if (oneThread !== undefined && isBehind(oneThread) && !isBehind(own)) {
      behindOnOneThread.push(describe(oneThread));
    }
  }
  const list = (items: readonly string[]) => items.join(", ") || "nothing";
  return [
    `Compared with the best of its peers, it is ahead in: ${list(ahead)}.`,
    `It is behind in: ${list(behind)}; and on one thread, as the peers run, also in: ` +
      `${list(behindOnOneThread)}.`,
  ];
}

function findCell({ cells }: Results, row: string, contender: string): Cell | undefined {
  return cells.find((cell) => cell.row === row && cell.contender === contender);
}

function format(value: number): string {
  return value < 100
    ? String(Number(value.toPrecision(3)))
    : Math.round(value).toLocaleString("en");
}

/** Of one core. Beyond this, don't rely on a figure. */
const disturbanceMax = 0.1;

function renderTable(results: Results): string[] {
  const [own, ...others] = results.contenders;
  const table = [["per second", own?.title ?? "", "p99 ms", ...others.map(({ title }) => title)]];
  for (const { name, title, unit } of rows) {
    const cell = findCell(results, name, "plant-store");
    if (cell === undefined) continue;
    const compared = others.map((other) => {
      const found = findCell(results, name, other.name);
      return found ? `${renderCell(found)} (${(cell.value / found.value).toPrecision(3)})` : "";
    });
    const p99 = unit ? "" : (cell.p99Ms?.toFixed(1) ?? "");
    table.push([title, renderCell(cell), p99, ...compared]);
  }
  return layOut(table);
}

/** What a response costs, however many of them share the processors. */
function renderCpuTable(results: Results): string[] {
  const { contenders } = results;
  const measured = rows.filter(({ name }) =>
    contenders.some((one) => findCell(results, name, one.name)?.cpuUsPerResponse),
  );
  if (measured.length === 0) return [];
  const table = [["processor time per response in µs", ...contenders.map(({ title }) => title)]];
  for (const { name, title } of measured) {
    const cells = contenders.map((one) => findCell(results, name, one.name)?.cpuUsPerResponse);
    table.push([title, ...cells.map((us) => (us === undefined ? "" : format(us)))]);
  }
  return [...layOut(table), ""];
}

function layOut(table: string[][]): string[] {
  const widthOf = (column: number) => Math.max(...table.map((row) => row[column]?.length ?? 0));
  const pad = (text: string, column: number) =>
    column === 0 ? text.padEnd(widthOf(0)) : text.padStart(widthOf(column));
  const rule = table[0]?.map((_, column) => (column ? ":" : "-").padStart(widthOf(column), "-"));
  table.splice(1, 0, rule ?? []);
  return table.map((row) => `| ${row.map(pad).join(" | ")} |`);
}

function renderCell({ value, spread, othersCpuShare = 0, failures = 0 }: Cell): string {
  const mark = othersCpuShare > disturbanceMax ? "\\*" : "";
  const range = spread === undefined ? "" : ` ±${Math.round(50 * spread)} %`;
  return `${format(value)}${mark}${range}${failures > 0 ? ` [${failures} failed]` : ""}`;
}

function describeRun(results: Results): string[] {
  const { cells, timing } = results;
  const hasSpread = cells.some(({ spread }) => spread !== undefined);
  const disturbed = cells.filter(({ othersCpuShare = 0 }) => othersCpuShare > disturbanceMax);
  return [
    "In parentheses: Plant Store's figure divided by this one. An empty cell: no such operation. " +
      (hasSpread ? "±: half the difference of the highest and the lowest round. " : "") +
      `\\*: disturbed, because other processes took more than ${disturbanceMax * 100} % of a core ` +
      `(${disturbed.length} of ${cells.length} figures).`,
    "",
    `A run of ${results.minutes} minutes on ${results.startedAt.slice(0, 10)}: medians of ` +
      `${timing.rounds} rounds (peers: ${(timing.rounds + 1) / 2}) of ${timing.roundSeconds} s. ` +
      `${results.machine}.`,
    "",
    ...results.contenders.map(
      ({ title, version, summary }) => `- **${title}** ${version}: ${summary}`,
    ),
  ];
}
