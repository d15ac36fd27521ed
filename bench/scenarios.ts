/** What the contenders are asked to do, and for how long. */
import type { Engine, Size } from "./contenders.ts";
import { type ActionName, manyPlants } from "./requests.ts";

export interface Row {
  readonly name: string;
  readonly title: string;
  /** Absent: per second. Of milliseconds and megabytes, less is better. */
  readonly unit?: "ms" | "MB";
}

export interface Scenario extends Row {
  readonly engine: Engine;
  /** Sent in turn. */
  readonly actions: readonly ActionName[];
  readonly connections: number;
  readonly size: Size;
  /** Its responses take long, so its rounds do. */
  readonly isSlow?: boolean;
}

export interface Timing {
  /** An odd number, so that one of them is the median. */
  readonly rounds: number;
  readonly roundSeconds: number;
  readonly starts: number;
}

export const warmUpSeconds = 1;
export const fullTiming: Timing = { rounds: 5, roundSeconds: 2, starts: 7 };
/** Shows that everything runs, not how fast. */
export const quickTiming: Timing = { rounds: 1, roundSeconds: 1, starts: 1 };

const mix = [...Array<ActionName>(9).fill("list"), "create" as const];
/** More lists than the 8 MiB of the response cache hold. */
const large = { size: { gardens: 1, plants: manyPlants } };
const slow = { connections: 4, isSlow: true };
const alone = { connections: 1 };
const largeAlone = { ...large, ...alone };

export const scenarios: readonly Scenario[] = [
  onSqlite("list", "cached list of 20", ["list"]),
  onSqlite("list-uncached", "uncached list of 20", ["list-uncached"], large),
  onSqlite("create-key", "create with a key", ["create-key"]),
  onSqlite("create", "create without a key", ["create"]),
  onSqlite("put", "put", ["put"]),
  onSqlite("delete", "delete", ["delete"]),
  onSqlite("mix", "9 lists of 20 to 1 create", mix),
  onSqlite("list-all", "list of all 100,000", ["list-all"], { ...large, ...slow }),
  onSqlite("bulk", "bulk of 1,000 (plants/s)", ["bulk"], slow),
  onSqlite("list-alone", "uncached list on one connection", ["list-uncached"], largeAlone),
  onSqlite("create-alone", "create on one connection", ["create"], alone),
  onPostgres("postgres-list", "list of 20", ["list"]),
  onPostgres("postgres-create-key", "create with a key", ["create-key"]),
  onPostgres("postgres-create", "create without a key", ["create"]),
  onPostgres("postgres-put", "put", ["put"]),
  onPostgres("postgres-delete", "delete", ["delete"]),
  onPostgres("postgres-bulk", "bulk of 1,000 (plants/s)", ["bulk"], slow),
  onSqlite("memory", "memory while creating in MB", ["create"], { unit: "MB" }),
];

/** What measureStart finds. */
export const startRows: readonly Row[] = [
  { name: "start", title: "start in ms", unit: "ms" },
  { name: "start-memory", title: "memory after the start in MB", unit: "MB" },
];

function onSqlite(
  name: string,
  title: string,
  actions: readonly ActionName[],
  more: Partial<Scenario> = {},
): Scenario {
  const size = { gardens: 1, plants: 1_000 };
  return { name, title, engine: "sqlite", actions, connections: 64, size, ...more };
}

function onPostgres(name: string, title: string, actions: ActionName[], more = {}): Scenario {
  const size = { gardens: 64, plants: 64 * 20 };
  const settings = { engine: "postgres", size, ...more } as const;
  return onSqlite(name, `PostgreSQL: ${title}`, actions, settings);
}
