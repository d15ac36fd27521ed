/** The targets of the project, and whether a run meets them. */
import type { ContenderName } from "../contenders/contender.ts";
import { findCell, type Results } from "./results.ts";

export interface Verdict {
  /** As "0.62 × bare". */
  readonly measured: string;
  /** Absent where a ratio only informs. */
  readonly target?: string;
  readonly isMet: boolean;
}

/** Plant Store's rate, as a multiple of another one. */
interface Target {
  readonly row: string;
  /** With its default settings, unless named. */
  readonly of?: ContenderName;
  readonly atLeast?: number;
  /** The same row, unless another is named. */
  readonly than: ContenderName;
  readonly thanRow?: string;
  readonly words?: string;
}

/** Two runs of the same code differ by that much. */
const asFast = 0.95;
const residentMegabytesMax = 120;
/** A guess, made when the start stopped using a bundle. */
const startTimesMax = 6;

const targets: readonly Target[] = [
  { row: "list", than: "bare", atLeast: 0.8 },
  { row: "list", than: "hono", atLeast: 3 },
  { row: "list", than: "fastify", atLeast: 5 },
  ...keyed("create-key", "create", 0.8),
  { row: "create-key", than: "hono", thanRow: "create", words: "Hono without" },
  { row: "create-key", than: "fastify", thanRow: "create", words: "Fastify without" },
  { row: "create", than: "bare", atLeast: 0.7 },
  ...events("create"),
  { row: "create", than: "hono", atLeast: 4 },
  { row: "create", than: "fastify", atLeast: 8 },
  { row: "delete", than: "bare", atLeast: 0.6 },
  { row: "delete", than: "fastify", atLeast: 6 },
  { row: "mix", than: "bare", atLeast: 0.72 },
  ...larger("list-huge", "list-anywhere", 0.8, "of that in 100,000"),
  ...larger("create-huge", "create-key", 0.8, "of that beside 1,000"),
  ...larger("list-gardens", "list", 0.5, "of one garden"),
  ...larger("create-gardens", "create-key", 0.5, "of one garden"),
  ...keyed("postgres-create-key", "postgres-create", 0.85),
  { row: "postgres-create-key", than: "previous", atLeast: 1.8 },
  { row: "postgres-create", than: "one-insert", atLeast: 3.5 },
  ...events("postgres-create"),
  { row: "postgres-list", than: "one-insert", atLeast: 2 },
];

/** In every row without a target of its own. */
const everywhere: readonly Omit<Target, "row">[] = [
  { than: "hono" },
  { than: "fastify" },
  { than: "previous", atLeast: asFast },
];

function keyed(row: string, thanRow: string, atLeast: number): Target[] {
  return [{ row, than: "plant-store", thanRow, atLeast, words: "of those without" }];
}

/** What events cost, and that they cost nothing where they are off. */
function events(row: string): Target[] {
  return [
    { row, than: "without-events", atLeast: 0.85, words: "of those without events" },
    { row, of: "without-events", than: "previous", atLeast: 0.98, words: "without events" },
  ];
}

function larger(row: string, thanRow: string, atLeast: number, words: string): Target[] {
  return [{ row, than: "plant-store", thanRow, atLeast, words }];
}

/** Without what was not measured. */
export function findVerdicts(results: Results, row: string): Verdict[] {
  const stated = targets.filter((target) => target.row === row);
  const others = everywhere.filter(
    ({ than }) => !stated.some((target) => target.than === than && !target.of),
  );
  return [...stated, ...others].flatMap(({ of = "plant-store", than, thanRow, atLeast, words }) => {
    const own = findCell(results, row, of)?.perSecond;
    const other = findCell(results, thanRow ?? row, than)?.perSecond;
    if (!own || !other) return [];
    return [compare(own / other, words ?? nameOf(results, than), "≥", atLeast)];
  });
}

export function findStartVerdicts({ start }: Results): Verdict[] {
  const timeOf = (name: string) => start?.rows.find((row) => row.contender === name)?.startMs;
  const own = timeOf("plant-store");
  const limit = timeOf("bare");
  return own && limit
    ? [compare(own / limit, "bare", "≤", startTimesMax, ", to be confirmed")]
    : [];
}

export function findMemoryVerdicts(megabytes: number): Verdict[] {
  const isMet = megabytes < residentMegabytesMax;
  return [{ measured: `${megabytes.toFixed(0)} MB`, target: `< ${residentMegabytesMax}`, isMet }];
}

function compare(
  ratio: number,
  words: string,
  sign: "≥" | "≤",
  bound: number | undefined,
  note = "",
): Verdict {
  const isMet = bound === undefined || (sign === "≥" ? ratio >= bound : ratio <= bound);
  // A third digit, where two could look as if the target were met.
  const digits = ratio >= 10 ? 0 : isMet ? 2 : 3;
  const measured = `${ratio.toFixed(digits)} × ${words}`;
  return bound === undefined
    ? { measured, isMet }
    : { measured, target: `${sign} ${bound}${note}`, isMet };
}

/** How the table calls a contender. */
export function nameOf({ contenders }: Results, name: ContenderName): string {
  const names: Partial<Record<ContenderName, string>> = {
    "plant-store": "Plant Store",
    "one-thread": "one thread",
    "without-events": "events off",
    hono: "Hono",
    elysia: "Elysia",
    fastify: "Fastify",
    "one-insert": "one INSERT per request",
  };
  const version = contenders.find((one) => one.name === name)?.version.split(" ")[0];
  return name === "previous" ? (version ?? name) : (names[name] ?? name);
}
