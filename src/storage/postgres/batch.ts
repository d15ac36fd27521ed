/**
 * Applies any batch of writes in one transaction of two round trips, whatever it holds: the first
 * locks the gardens and reads what the outcomes depend on, the second stores what was decided.
 */
import type { ClientBase, QueryResult } from "pg";
import { assignedIdMax, type PlantId } from "../../domain/plant.ts";
import { keysMaxOf, type Outcome, type Write } from "../../domain/storage.ts";
import { isKeyed, type KeyRow, keyHashOf, sha256 } from "../key-rows.ts";
import {
  type Decision,
  decide,
  type GardenLimits,
  type GardenState,
  type Known,
  pair,
} from "./decide.ts";
import { send } from "./statement.ts";

interface BatchOptions {
  readonly plantsMax: number | undefined;
  readonly fullGardens: FullGardens;
  /** How many ids that may be in the way of new ones are looked for in each garden. */
  readonly searchedIds: number;
  /** For as long as a statement may take, instead of briefly. */
  readonly waitsForLocks?: boolean;
}

/** Longer than instances wait for each other's commits in a busy garden. */
export const lockTimeoutMs = 200;

/** How long the count of a full garden is trusted, and how many are remembered. */
const trustedMs = 60_000;
const rememberedMax = 65_536;

/**
 * Gardens that a count has found full. The row of a garden says how much it holds, and is exact
 * while every instance has a quota. It may be too high after one without, so a garden that seems
 * full is counted again, but not for every create.
 */
export class FullGardens {
  readonly #countedAtMs = new Map<string, number>();

  has(limit: keyof GardenLimits, garden: string): boolean {
    const atMs = this.#countedAtMs.get(`${limit}\0${garden}`);
    return atMs !== undefined && performance.now() - atMs < trustedMs;
  }

  add(limit: keyof GardenLimits, garden: string): void {
    if (this.#countedAtMs.size >= rememberedMax) this.clear();
    this.#countedAtMs.set(`${limit}\0${garden}`, performance.now());
  }

  clear(): void {
    this.#countedAtMs.clear();
  }
}

/** Calls `commit` before it sends what is to last. */
export async function applyBatch(
  client: ClientBase,
  writes: readonly Write[],
  commit: () => void,
  options: BatchOptions,
): Promise<readonly Outcome[]> {
  try {
    const { known, full } = await read(client, writes, options);
    const decision = decide(writes, known);
    commit();
    await store(client, decision, known);
    for (const [limit, garden] of full) options.fullGardens.add(limit, garden);
    return decision.outcomes;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

/** What a batch may add to a garden. */
interface Demand {
  readonly garden: string;
  plants: number;
  keys: number;
}

/** Of the gardens to lock: without limits, deletions don't wait for the row of their garden. */
function demandsOf(
  writes: readonly Write[],
  keys: readonly KeyPlace[],
  isLimited: boolean,
): Demand[] {
  const demands = new Map<string, Demand>();
  for (const write of writes) {
    const { garden } = write;
    const demand = demands.get(garden) ?? { garden, plants: 0, keys: 0 };
    if (write.kind === "create") demand.plants++;
    demands.set(garden, demand);
  }
  for (const { garden } of keys) {
    const demand = demands.get(garden);
    if (demand) demand.keys++;
  }
  return (
    [...demands.values()]
      .filter(({ plants }) => isLimited || plants > 0)
      // Everyone takes locks in the same order, so that nobody waits in a circle.
      .sort((one, other) => (one.garden < other.garden ? -1 : 1))
  );
}

/** A row of keys that a batch uses. */
interface KeyPlace {
  readonly garden: string;
  readonly keyHash: Buffer;
  /** Absent if the row is of lines, which versions before 0.4 did not have. */
  readonly key: string | undefined;
}

function keyPlacesOf(writes: readonly Write[]): KeyPlace[] {
  const places = new Map<string, KeyPlace>();
  for (const { garden, idempotency } of writes.filter(isKeyed)) {
    const keyHash = keyHashOf(idempotency);
    const key = idempotency.line === undefined ? idempotency.key : undefined;
    places.set(pair(garden, keyHash), { garden, keyHash, key });
  }
  return [...places.values()];
}

interface Reading {
  readonly known: Known;
  /** Gardens that were counted, and have no room for all of the batch. */
  readonly full: readonly (readonly [limit: keyof GardenLimits, garden: string])[];
}

/** One round trip. */
async function read(
  client: ClientBase,
  writes: readonly Write[],
  { plantsMax, fullGardens, searchedIds, waitsForLocks }: BatchOptions,
): Promise<Reading> {
  const limits =
    plantsMax === undefined ? undefined : { plants: plantsMax, keys: keysMaxOf(plantsMax) };
  const keyPlaces = keyPlacesOf(writes);
  const demands = demandsOf(writes, keyPlaces, limits !== undefined);
  const gardens = demands.map(({ garden }) => garden);
  const deleted = writes.filter((write) => write.kind === "delete");
  const chosen = writes.flatMap(({ kind, garden, id }) =>
    kind === "create" && id !== undefined ? [{ garden, id }] : [],
  );
  const singleKeys = keyPlaces.filter(({ key }) => key !== undefined);
  const count = (limit: keyof GardenLimits) => {
    const adding = limits ? demands.filter((demand) => demand[limit] > 0) : [];
    return queryFor(client, adding, countStatements[limit], [
      adding.map(({ garden }) => garden),
      adding.map((demand) => demand[limit]),
      adding.map(({ garden }) => fullGardens.has(limit, garden)),
      limits?.[limit],
    ]);
  };
  const [, locked, gone, existing, keys, olderKeys, plantCounts, keyCounts, inTheWay] =
    await inOneRoundTrip([
      client.query(waitsForLocks ? beginStatement : `${beginStatement}; ${waitBriefly}`),
      queryFor(client, demands, lockStatement, [gardens]),
      queryFor(client, deleted, batchDeleteStatement, placesOf(deleted)),
      queryFor(client, chosen, findPlantsStatement, placesOf(chosen)),
      queryFor(client, keyPlaces, findKeysStatement, [
        keyPlaces.map(({ garden }) => garden),
        keyPlaces.map(({ keyHash }) => keyHash),
      ]),
      queryFor(client, singleKeys, findOlderKeysStatement, [
        singleKeys.map(({ garden }) => garden),
        singleKeys.map(({ key }) => key),
      ]),
      count("plants"),
      count("keys"),
      queryFor(client, searchedIds > 0 ? demands : [], searchStatement, [gardens, searchedIds]),
    ] as const);
  const counts = { plants: toCounts(plantCounts), keys: toCounts(keyCounts) };
  const fullOf = (limit: keyof GardenLimits) =>
    demands
      .filter(({ garden, [limit]: added }) => {
        const held = counts[limit].get(garden);
        return limits && held !== undefined && held + added > limits[limit];
      })
      .map(({ garden }) => [limit, garden] as const);
  const goneFrom = Map.groupBy(gone.rows, ({ garden }) => garden);
  const stateOf = (row: QueryResult["rows"][number]): [string, GardenState] => {
    const { garden, last_id: lastId, plants_bound, keys_bound } = row;
    if (!limits) return [garden, { lastId, plants: undefined, keys: undefined }];
    // Plants were counted after the deletions, which may come later in the batch than creates.
    const counted = counts.plants.get(garden);
    const goneCount = goneFrom.get(garden)?.length ?? 0;
    const plants = counted === undefined ? toNumber(plants_bound) : counted + goneCount;
    return [garden, { lastId, plants, keys: counts.keys.get(garden) ?? toNumber(keys_bound) }];
  };
  const known: Known = {
    gardens: new Map(locked.rows.map(stateOf)),
    plants: [...gone.rows, ...existing.rows, ...inTheWay.rows],
    keys: [...toKeys(olderKeys), ...toKeys(keys)],
    limits,
  };
  return { known, full: [...fullOf("plants"), ...fullOf("keys")] };
}

const beginStatement =
  "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL plantstore.transaction = open";

const waitBriefly = `SET LOCAL lock_timeout = ${lockTimeoutMs}`;

const lockStatement = `
  INSERT INTO gardens (garden, last_id) SELECT garden, 0 FROM unnest($1::text[]) AS wanted (garden)
    ON CONFLICT (garden) DO UPDATE SET last_id = gardens.last_id
    RETURNING garden, last_id, plants_bound, keys_bound`;

export const deleteStatement = `
  DELETE FROM plants WHERE (garden, id) IN
    (SELECT garden, id FROM unnest($1::text[], $2::bigint[]) AS deleted (garden, id))
    RETURNING garden, id`;

/** Deletes nothing if BEGIN was cancelled: what was sent with it then runs on its own. */
const batchDeleteStatement = deleteStatement.replace(
  "WHERE",
  "WHERE current_setting('plantstore.transaction', true) = 'open' AND",
);

const findPlantsStatement = `
  SELECT garden, id FROM plants
    JOIN unnest($1::text[], $2::bigint[]) AS chosen (garden, id) USING (garden, id)`;

const findKeysStatement = `
  SELECT garden, key_hash, request_hash, plant_id, lines, expires_at_ms FROM idempotency_hashes
    JOIN unnest($1::text[], $2::bytea[]) AS sent (garden, key_hash) USING (garden, key_hash)`;

/** Of versions before 0.4, which may still be writing them during an upgrade. */
const findOlderKeysStatement = `
  SELECT garden, key, request, plant_id, expires_at_ms FROM idempotency_keys
    JOIN unnest($1::text[], $2::text[]) AS sent (garden, key) USING (garden, key)`;

/** How much the gardens hold that may be full or that nobody has counted, up to one too many. */
const countStatements: Readonly<Record<keyof GardenLimits, string>> = {
  plants: countStatement("plants", "plants_bound"),
  keys: countStatement("idempotency_hashes", "keys_bound"),
};

function countStatement(table: string, bound: string): string {
  return `
  SELECT garden, (SELECT count(*) FROM (SELECT 1 FROM ${table} AS held
        WHERE held.garden = wanted.garden LIMIT $4::bigint + 1) AS counted) AS held
    FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS wanted (garden, added, is_known_full)
    JOIN gardens USING (garden)
    WHERE ${bound} IS NULL OR (${bound} + added > $4::bigint AND NOT is_known_full)`;
}

/** The first ids above the counter that are taken, although the counter has not got there. */
const searchStatement = `
  SELECT garden, id FROM unnest($1::text[]) AS wanted (garden)
    JOIN gardens USING (garden)
    CROSS JOIN LATERAL (SELECT id FROM plants
      WHERE plants.garden = wanted.garden AND id > last_id AND id <= ${assignedIdMax}
      ORDER BY id LIMIT $2) AS taken`;

/** One round trip. A COMMIT after a failed statement is answered as ROLLBACK, without an error. */
async function store(client: ClientBase, decision: Decision, known: Known): Promise<void> {
  const { plants, keys } = decision;
  const gardens = [...decision.gardens].filter(
    ([name, state]) => state !== known.gardens.get(name),
  );
  // A count beyond the limit is not exact, because counting stops there.
  const boundsOf = (limit: keyof GardenLimits) =>
    gardens.map(([, { [limit]: held }]) =>
      held !== undefined && held <= (known.limits?.[limit] ?? 0) ? held : null,
    );
  const results = await inOneRoundTrip([
    queryFor(client, plants, insertPlantsStatement, [
      plants.map(({ garden }) => garden),
      plants.map(({ id }) => id),
      plants.map(({ name }) => name),
      plants.map(({ tag }) => tag),
    ]),
    queryFor(client, gardens, updateGardensStatement, [
      gardens.map(([name]) => name),
      gardens.map(([, { lastId }]) => lastId),
      boundsOf("plants"),
      boundsOf("keys"),
    ]),
    queryFor(client, keys, insertKeysStatement, [
      keys.map(({ garden }) => garden),
      keys.map(({ keyHash }) => keyHash),
      keys.map(({ requestHash }) => requestHash),
      keys.map(({ plantId }) => plantId),
      keys.map(({ lines }) => lines),
      keys.map(({ expiresAtMs }) => expiresAtMs),
    ]),
    client.query("COMMIT"),
  ]);
  const command = results.at(-1)?.command;
  if (command !== "COMMIT") throw new Error(`A commit was answered as ${command}.`);
}

const insertPlantsStatement = `
  INSERT INTO plants (garden, id, name, tag)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[])`;

const updateGardensStatement = `
  UPDATE gardens SET last_id = moved.last_id, plants_bound = moved.plants, keys_bound = moved.keys
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
      AS moved (garden, last_id, plants, keys)
    WHERE gardens.garden = moved.garden`;

const insertKeysStatement = `
  INSERT INTO idempotency_hashes (garden, key_hash, request_hash, plant_id, lines, expires_at_ms)
    SELECT * FROM
      unnest($1::text[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[], $6::bigint[])
    ON CONFLICT (garden, key_hash) DO UPDATE SET request_hash = excluded.request_hash,
      plant_id = excluded.plant_id, lines = excluded.lines, expires_at_ms = excluded.expires_at_ms`;

export function placesOf(
  places: readonly { readonly garden: string; readonly id: PlantId }[],
): [gardens: string[], ids: PlantId[]] {
  return [places.map(({ garden }) => garden), places.map(({ id }) => id)];
}

type Rows = Pick<QueryResult, "rows" | "command">;

function toNumber(count: bigint | null): number | undefined {
  return count === null ? undefined : Number(count);
}

function toCounts({ rows }: Rows): Map<string, number> {
  return new Map(rows.map(({ garden, held }) => [garden, Number(held)]));
}

function toKeys({ rows }: Rows): KeyRow[] {
  return rows.map((row) => ({
    garden: row.garden,
    keyHash: row.key_hash ?? sha256(row.key),
    requestHash: row.request_hash ?? sha256(row.request),
    plantId: row.plant_id,
    lines: row.lines ?? null,
    expiresAtMs: Number(row.expires_at_ms),
  }));
}

/** A statement over a list of items, left out where there are none. */
async function queryFor(
  client: ClientBase,
  items: readonly unknown[],
  text: string,
  values: unknown[],
): Promise<Rows> {
  return items.length === 0 ? { rows: [], command: "" } : send(client, text, values);
}

/** Waits for all, so that the connection is at rest afterwards; fails with what failed first. */
async function inOneRoundTrip<Results extends readonly unknown[]>(
  queries: {
    readonly [Index in keyof Results]: Promise<Results[Index]>;
  },
): Promise<Results> {
  const settled = await Promise.allSettled(queries as readonly Promise<unknown>[]);
  return settled.map((each) => {
    if (each.status === "rejected") throw each.reason;
    return each.value;
  }) as unknown as Results;
}
