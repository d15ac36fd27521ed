/** What the benchmark needs to know of each contender. */
import type { Action } from "../load/action.ts";
import type { ChildWish } from "../process/children.ts";

/** In the order of the table's columns; "one-insert" is for PostgreSQL. */
export const contenderNames = [
  "plant-store",
  "one-thread",
  "without-events",
  "previous",
  "bare",
  "hono",
  "elysia",
  "fastify",
  "one-insert",
] as const;
export type ContenderName = (typeof contenderNames)[number];

export type Engine = "sqlite" | "postgres";

export type ActionName =
  | "list"
  | "list-anywhere"
  | "list-all"
  | "create"
  | "create-key7"
  | "create-key4"
  | "put"
  | "delete"
  | "bulk"
  | "bulk-delete"
  | "search"
  | "tags";

/** Plants are dealt to the gardens in turn. */
export interface Size {
  readonly gardens: number;
  readonly plants: number;
  /** How many plants have ids that start with the same number; one by default. */
  readonly perNumber?: number;
}

export interface Data {
  readonly directory: string;
  /** The path of a file, or the address of a PostgreSQL database. */
  readonly database: string;
  /** One per garden, in order. */
  readonly tokens: readonly string[];
}

export interface Contender {
  readonly name: ContenderName;
  /** What it is, in one line, and what the others do that it doesn't. */
  readonly summary: string;
  readonly instances: number;
  /** More than it can delete in a second: so many plants are stored beforehand. */
  readonly deletesPerSecondMax: number;
  /** Gets a 200 once it serves. */
  readonly readyPath: string;
  /** Repeats what Plant Store responded, so it can only start after it. */
  readonly isEcho?: boolean;
  /** Why it can't run here. */
  findObstacle?(): string | undefined;
  readVersion(): Promise<string>;
  prepare(directory: string, size: Size): Promise<Data>;
  describeStart(data: Data, port: number): ChildWish;
  /** Absent if the contender has nothing of the kind. */
  describeAction(name: ActionName, size: Size): Action | undefined;
  /** Its database's process, if it has one, whose work isn't a disturbance. */
  databasePid?(): number | undefined;
}

/** Nine digits, as all numbers in requests have. */
export const firstNumber = 100_000_001;
export const lastNumber = 999_999_999;
export const tag = "bench";
export const listLimit = 20;
export const bulkPlants = 1_000;

export function gardenName(index: number): string {
  return `garden-${index}`;
}

/** Plants for both engines: numbered, and dealt to the gardens in turn. */
export function plantsStatement({ gardens, plants, perNumber = 1 }: Size): string {
  const id = `CAST(${firstNumber} + number / ${perNumber} AS bigint) * ${perNumber} + number % ${perNumber}`;
  return `
    INSERT INTO plants (garden, id, name, tag)
    WITH RECURSIVE numbers(number) AS (
      SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < ${plants - 1}
    )
    SELECT 'garden-' || (number % ${gardens}), ${id},
        'Plant ' || (${firstNumber} + number), '${tag}'
      FROM numbers${gardens > 1 ? ` ORDER BY number % ${gardens}, number` : ""}`;
}

const headers = { Authorization: "Bearer {token}" };
const json = { ...headers, "Content-Type": "application/json" };

/** Plant Store's own requests, which all contenders take as far as they go. */
export function describeAction(name: ActionName, { gardens, plants }: Size): Action {
  const list = (path: string, count: number): Action => ({
    method: "GET",
    path,
    headers,
    status: 200,
    findFault: (body) => findListFault(body, count),
  });
  const create = (more: Readonly<Record<string, string>>): Action => ({
    method: "POST",
    path: "/plants",
    headers: { ...json, ...more },
    body: JSON.stringify({ name: "Plant {number}", tag }),
    status: 201,
    findFault: findPlantFault,
  });
  switch (name) {
    case "list":
      return list(`/plants?limit=${listLimit}`, Math.min(listLimit, Math.floor(plants / gardens)));
    case "list-anywhere":
      return list(`/plants?limit=${listLimit}&after={anywhere}`, listLimit);
    case "list-all":
      return list("/plants", plants);
    case "create":
      return create({});
    case "create-key7":
      return create({ "Idempotency-Key": "{key7}" });
    case "create-key4":
      return create({ "Idempotency-Key": "{key4}" });
    case "put":
      return { ...create({}), method: "PUT", path: "/plants/{anywhere}", status: 200 };
    case "delete":
      return {
        method: "DELETE",
        path: "/plants/{number}",
        headers,
        status: 204,
        findFault: (body) => (body === "" ? undefined : "the body isn't empty"),
      };
    case "bulk":
      return {
        ...create({ "Idempotency-Key": "{key7}" }),
        path: "/plants/bulk",
        body: JSON.stringify(Array.from({ length: bulkPlants }, () => ({ name: "Plant", tag }))),
        status: 200,
        plants: bulkPlants,
        findFault(body) {
          const created = body.match(/"status":201/g)?.length ?? 0;
          return created === bulkPlants ? undefined : `${created} plants were created`;
        },
      };
    case "bulk-delete": {
      const ids = Array.from({ length: bulkPlants }, (_, at) => `{number}${padded(at)}`);
      return {
        method: "POST",
        path: "/plants/bulk-delete",
        headers: json,
        body: `{"ids":[${ids}]}`,
        status: 200,
        plants: bulkPlants,
        findFault: (body) => findDifference(body, { deleted: bulkPlants, missing: [] }),
      };
    }
    case "search":
      return {
        ...list(`/plants?limit=${listLimit}&q={key4}`, 0),
        findFault: (body) => findDifference(body, []),
      };
    case "tags":
      // A position before the only tag, and each time another one: this isn't about the cache.
      return {
        ...list("/tags?after=a{key4}", 1),
        findFault: (body) => findDifference(body, [{ tag, plants }]),
      };
  }
}

const padded = (number: number) => String(number).padStart(String(bulkPlants - 1).length, "0");

function findDifference(body: string, expected: unknown): string | undefined {
  return Bun.deepEquals(JSON.parse(body), expected) ? undefined : "it's another response";
}

function findListFault(body: string, count: number): string | undefined {
  const plants = JSON.parse(body) as { name: string; tag: string }[];
  if (plants.length !== count) return `the list has ${plants.length} plants, not ${count}`;
  const isRight = plants.every((plant, index) => {
    const before = plants[index - 1]?.name ?? "";
    return /^Plant \d{9}$/.test(plant.name) && plant.name > before && plant.tag === tag;
  });
  return isRight ? undefined : "the list has other plants";
}

function findPlantFault(body: string): string | undefined {
  const plant = JSON.parse(body) as { name: string; tag: string };
  const isRight = /^Plant \d{9}$/.test(plant.name) && plant.tag === tag;
  return isRight ? undefined : "it's another plant";
}
