/**
 * Applies any batch of writes in one transaction of two round trips, whatever it holds: the first
 * locks the gardens and reads what the outcomes depend on, the second stores what was decided. A
 * third is needed where a garden's next id lies behind thousands of ids that clients chose.
 */
import { type ClientBase, DatabaseError, type QueryResult } from "pg";
import type { PlantId } from "../../domain/plant.ts";
import { countedIdMax, keysMaxOf, type Outcome, type Write } from "../../domain/storage.ts";
import { type Decision, decide, type GardenLimits, hashOf, type Known } from "./decide.ts";
import { isLost } from "./errors.ts";
import * as statements from "./statements.ts";
import { findGaps, placesOf, queryFor, toCounts, toGaps, toKeys } from "./statements.ts";

export interface BatchOptions {
  readonly plantsMax: number | undefined;
  /** Whether plants may have ids that their garden has not counted, as of whoever loaded them. */
  readonly isUncounted: boolean;
  readonly recounts: Recounts;
  readonly hardGardens: HardGardens;
}

/** How long the count of a full garden is trusted, and how many are remembered. */
const recountEveryMs = 60_000;
const remembered = 65_536;
/** Rows that the search for free ids reads in the first round trip. */
const takenRowsMax = 2_000;

/**
 * When gardens were last counted. The row of a garden says how much it holds, and is exact while
 * every instance has a quota. It may be too high after one without, or of an older version, so a
 * garden that seems full is counted again, but not for every create.
 */
export class Recounts {
  readonly #atMs = new Map<string, number>();

  isRecent(limit: keyof GardenLimits, garden: string): boolean {
    const atMs = this.#atMs.get(`${limit}\0${garden}`);
    return atMs !== undefined && performance.now() - atMs < recountEveryMs;
  }

  forget(): void {
    this.#atMs.clear();
  }

  note(limit: keyof GardenLimits, gardens: readonly string[]): void {
    if (this.#atMs.size + gardens.length > remembered) this.forget();
    for (const garden of gardens) this.#atMs.set(`${limit}\0${garden}`, performance.now());
  }
}

/**
 * Gardens that need a batch: they are full, or clients chose ids that may be next. One statement
 * would fail for all writes that share it.
 */
export class HardGardens {
  readonly #gardens = new Set<string>();

  has(garden: string): boolean {
    return this.#gardens.has(garden);
  }

  note(garden: string, lastId: PlantId, isFull = false): void {
    const isHigh = lastId > countedIdMax - 10_000n;
    if (!isFull && !isHigh) {
      this.#gardens.delete(garden);
      return;
    }
    if (this.#gardens.size >= remembered) this.#gardens.clear();
    this.#gardens.add(garden);
  }
}

/** Calls `commit` before it sends what is to last. */
export async function applyBatch(
  client: ClientBase,
  writes: readonly Write[],
  commit: () => void,
  options: BatchOptions,
): Promise<readonly Outcome[]> {
  const { plantsMax, recounts } = options;
  const limits = plantsMax === undefined ? undefined : limitsOf(plantsMax);
  const demands = demandsOf(writes, limits !== undefined);
  try {
    const { known, counted } = await read(client, writes, demands, commit, { ...options, limits });
    let decision = decide(writes, known);
    if (decision.short.size > 0) {
      const found = await findGaps(client, demands, Number.MAX_SAFE_INTEGER, options.isUncounted);
      decision = decide(writes, { ...known, gaps: toGaps(found) });
    }
    commit();
    await store(client, decision, known);
    recounts.note("plants", [...counted.plants.keys()]);
    recounts.note("keys", [...counted.keys.keys()]);
    for (const [garden, { lastId, plants = 0 }] of decision.gardens) {
      options.hardGardens.note(garden, lastId, limits && plants >= limits.plants);
    }
    return decision.outcomes;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

function limitsOf(plantsMax: number): GardenLimits {
  return { plants: plantsMax, keys: keysMaxOf(plantsMax) };
}

/** What a batch may add to a garden. */
interface Demand {
  readonly garden: string;
  plants: number;
  keys: number;
  /** Ids to assign, and ids that the batch names itself, which may be in the way. */
  ids: number;
}

/** Of the gardens to lock: without limits, deletions don't wait for the row of their garden. */
function demandsOf(writes: readonly Write[], isLimited: boolean): Demand[] {
  const demands = new Map<string, Demand>();
  for (const write of writes) {
    const { garden } = write;
    const demand = demands.get(garden) ?? { garden, plants: 0, keys: 0, ids: 0 };
    demand.ids++;
    if (write.kind === "create") {
      demand.plants++;
      if (write.idempotency) demand.keys++;
    }
    demands.set(garden, demand);
  }
  return [...demands.values()]
    .filter(({ plants }) => isLimited || plants > 0)
    .sort(inOneOrder(({ garden }) => garden));
}

/** Everyone takes locks in the same order, so that nobody waits in a circle. */
export function inOneOrder<Item>(keyOf: (item: Item) => string) {
  return (one: Item, other: Item): number => (keyOf(one) < keyOf(other) ? -1 : 1);
}

interface Reading {
  readonly known: Known;
  readonly counted: Record<keyof GardenLimits, ReadonlyMap<string, number>>;
}

/** One round trip. */
async function read(
  client: ClientBase,
  writes: readonly Write[],
  demands: readonly Demand[],
  commit: () => void,
  options: BatchOptions & { readonly limits: GardenLimits | undefined },
): Promise<Reading> {
  const { limits, recounts, isUncounted } = options;
  const deleted = writes.filter((write) => write.kind === "delete");
  const chosen = writes.flatMap(({ kind, garden, id }) =>
    kind === "create" && id !== undefined ? [{ garden, id }] : [],
  );
  const keyed = writes.flatMap((write) =>
    write.kind === "create" && write.idempotency
      ? [{ garden: write.garden, key: write.idempotency.key }]
      : [],
  );
  const keyGardens = keyed.map(({ garden }) => garden);
  const count = (limit: keyof GardenLimits) => {
    const adding = limits ? demands.filter((demand) => demand[limit] > 0) : [];
    return queryFor(client, adding, statements.counts[limit], [
      adding.map(({ garden }) => garden),
      adding.map((demand) => demand[limit]),
      adding.map(({ garden }) => recounts.isRecent(limit, garden)),
      limits?.[limit],
    ]);
  };
  const assigning = demands.filter(({ plants }) => plants > 0);
  const [, locked, gone, existing, keys, olderKeys, plantCounts, keyCounts, gaps] =
    await inOneRoundTrip([
      begin(client, commit),
      queryFor(client, demands, statements.lock, [demands.map(({ garden }) => garden)]),
      queryFor(client, deleted, statements.deletion, placesOf(deleted)),
      queryFor(client, chosen, statements.findPlants, placesOf(chosen)),
      queryFor(client, keyed, statements.findKeys, [
        keyGardens,
        keyed.map(({ key }) => Buffer.from(hashOf(key), "hex")),
      ]),
      queryFor(client, keyed, statements.findOlderKeys, [keyGardens, keyed.map(({ key }) => key)]),
      count("plants"),
      count("keys"),
      findGaps(client, assigning, takenRowsMax, isUncounted),
    ] as const);
  const counted = { plants: toCounts(plantCounts), keys: toCounts(keyCounts) };
  const goneCounts = new Map<string, number>();
  for (const { garden } of gone.rows) goneCounts.set(garden, (goneCounts.get(garden) ?? 0) + 1);
  const held = (counts: ReadonlyMap<string, number>, garden: string, bound: bigint | null) =>
    counts.get(garden) ?? (limits && bound !== null ? Number(bound) : undefined);
  const gardens = locked.rows.map(({ garden, last_id: lastId, plants_bound, keys_bound }) => {
    // Plants were counted after the deletions, which may come later in the batch than creates.
    const isCounted = counted.plants.has(garden);
    const plants = held(counted.plants, garden, plants_bound);
    const before = plants && isCounted ? plants + (goneCounts.get(garden) ?? 0) : plants;
    const state = { lastId, plants: before, keys: held(counted.keys, garden, keys_bound) };
    return [garden, state] as const;
  });
  const known: Known = {
    gardens: new Map(gardens),
    plants: [...gone.rows, ...existing.rows],
    keys: [...toKeys(olderKeys), ...toKeys(keys)],
    limits,
    gaps: toGaps(gaps),
  };
  return { known, counted };
}

/**
 * If the server refuses it and stays, as when somebody cancels just this, each statement after it
 * is a transaction of its own, and has lasted.
 */
async function begin(client: ClientBase, commit: () => void): Promise<QueryResult> {
  try {
    return await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
  } catch (error) {
    if (!(error instanceof DatabaseError) || isLost(error)) throw error;
    commit();
    throw new Error("No transaction was begun.", { cause: error });
  }
}

/** One round trip. A COMMIT after a failed statement is answered as ROLLBACK, without an error. */
async function store(client: ClientBase, decision: Decision, known: Known): Promise<void> {
  const { plants, keys } = decision;
  const gardens = [...decision.gardens].filter(
    ([name, state]) => state !== known.gardens.get(name),
  );
  const boundOf = (limit: keyof GardenLimits) =>
    gardens.map(([, { [limit]: held }]) =>
      held !== undefined && held <= (known.limits?.[limit] ?? 0) ? held : null,
    );
  const results = await inOneRoundTrip([
    queryFor(client, plants, statements.insertPlants, [
      plants.map(({ garden }) => garden),
      plants.map(({ id }) => id),
      plants.map(({ name }) => name),
      plants.map(({ tag }) => tag),
    ]),
    queryFor(client, gardens, statements.updateGardens, [
      gardens.map(([name]) => name),
      gardens.map(([, { lastId }]) => lastId),
      boundOf("plants"),
      boundOf("keys"),
    ]),
    queryFor(client, keys, statements.insertKeys, [
      keys.map(({ garden }) => garden),
      keys.map(({ keyHash }) => Buffer.from(keyHash, "hex")),
      keys.map(({ requestHash }) => Buffer.from(requestHash, "hex")),
      keys.map(({ plantId }) => plantId),
      keys.map(({ expiresAtMs }) => expiresAtMs),
    ]),
    client.query("COMMIT"),
  ]);
  const command = results.at(-1)?.command;
  if (command !== "COMMIT") throw new Error(`A commit was answered as ${command}.`);
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
