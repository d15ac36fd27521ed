/** What the benchmark needs of each contender; one file beside this one knows each of them. */
import type { Action } from "../load/action.ts";
import type { ChildWish } from "../process/children.ts";

export const contenderNames = [
  "plant-store",
  "previous",
  "bare",
  "bare-threads",
  "hono",
  "elysia",
  "fastify",
  "pocketbase",
  "json-server",
] as const;
export type ContenderName = (typeof contenderNames)[number];

export type ActionName =
  | "list-20"
  | "list-1"
  | "list-all"
  | "create"
  | "delete"
  | "refused-401"
  | "refused-400"
  | "refused-404";

export interface Contender {
  readonly name: ContenderName;
  /** What it is, and what it does not do that the others do, in one line. */
  readonly summary: string;
  /** Above what it can delete in a second: so many plants are prepared. */
  readonly deletesPerSecondMax: number;
  /** A path that is answered with 200 once it serves. */
  readonly readyPath: string;
  /** Whether it repeats what Plant Store answered, and so can only start after it. */
  readonly isEcho: boolean;
  /** Whether it is measured in the headline scenarios only. */
  readonly isForHeadlines?: boolean;
  /** Why it cannot run on this machine; absent if it can. */
  findObstacle(): string | undefined;
  readVersion(): Promise<string>;
  /** Makes fresh data without plants, and hands back a credential that opens it. */
  prepare(directory: string): Promise<string>;
  /** Puts `count` plants, numbered from `firstPlantNumber`, into prepared data. */
  seed(directory: string, count: number): void;
  describeStart(directory: string, port: number): ChildWish;
  /** Absent if the contender has nothing of the kind. */
  describeAction(name: ActionName, credential: string, plants: number): Action | undefined;
}

/** Nine digits, as all numbers in slots have. */
export const firstPlantNumber = 100_000_001;
export const user = "gardener";
export const tag = "bench";

export function plantName(number: number | string): string {
  return `Plant ${number}`;
}

/** SQL that numbers rows, for engines that are filled beside their service. */
export function numbersUpTo(count: number): string {
  return `WITH RECURSIVE numbers(number) AS (
    SELECT ${firstPlantNumber}
    UNION ALL SELECT number + 1 FROM numbers WHERE number < ${firstPlantNumber + count - 1}
  )`;
}

/** What is wrong with a list of the first plants; `count` is how many it must hold. */
export function findListFault(value: unknown, count: number): string | undefined {
  if (!Array.isArray(value)) return "the list is no array";
  if (value.length !== count) return `the list holds ${value.length} plants, not ${count}`;
  for (const [index, plant] of value.entries()) {
    const isRight = plant.name === plantName(firstPlantNumber + index) && plant.tag === tag;
    if (!isRight) return `plant ${index} of the list is ${JSON.stringify(plant)}`;
  }
  return undefined;
}

export function findPlantFault(value: unknown, name: string): string | undefined {
  const plant = value as { name?: unknown; tag?: unknown } | null;
  return plant?.name === name && plant.tag === tag ? undefined : "the plant is another one";
}
