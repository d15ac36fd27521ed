/**
 * Applies a group of writes to PostgreSQL: creates without an id and deletions in one statement,
 * any other group as a batch. Whoever creates plants locks the row of their garden first, so
 * instances take turns in a garden; constraints stop what might slip through.
 */
import type { QueryResult } from "pg";
import type { PlantId } from "../../domain/plant.ts";
import {
  type CreateWrite,
  type DeleteWrite,
  GardenLocked,
  type Outcome,
  type PlantStorage,
  type Write,
} from "../../domain/storage.ts";
import { applyBatch, deleteStatement, FullGardens, lockTimeoutMs, placesOf } from "./batch.ts";
import { pair } from "./decide.ts";
import { hasState } from "./errors.ts";
import type { TransactionRunner, Work } from "./transaction.ts";

/** Few enough that waiting writes don't notice. */
const forgottenKeysMax = 1_000;
/** Taken ids to look for after a collision; a hundred times as many after each further one. */
const searchedIdsMin = 1_000;

/** The second is of versions before 0.4. */
const keyTables = [
  ["idempotency_hashes", "key_hash"],
  ["idempotency_keys", "key"],
];

/**
 * In the `FROM` of the rows to lock, so that it holds before the first lock is waited for. It ends
 * with the statement.
 */
const briefly = `(SELECT set_config('lock_timeout', '${lockTimeoutMs}', true)) AS briefly`;

const lockNotAvailable = "55P03";
const uniqueViolation = "23505";
/** An id that is taken, none left to assign, and a garden without room. */
const creationFailures = [uniqueViolation, "23514", "23502"];

export function createWriter(
  runner: TransactionRunner,
  plantsMax?: number,
): Pick<PlantStorage, "apply" | "forgetKeys"> {
  const fullGardens = new FullGardens();
  const isOneStatement = (writes: readonly Write[]): writes is readonly CreateWrite[] =>
    writes.every((write) => isPlainCreate(write) && !fullGardens.has("plants", write.garden));

  async function applyAll(writes: readonly Write[], isApart: boolean): Promise<readonly Outcome[]> {
    if (!isApart && writes.every(isDelete)) {
      return deleteAll(runner, writes, plantsMax !== undefined);
    }
    // If one statement isn't enough, both ways together still end in time.
    const dueAtMs = runner.dueAtMs();
    const isOne = !isApart && isOneStatement(writes);
    const outcomes = isOne && (await createAll(runner, writes, plantsMax));
    if (outcomes) return outcomes;
    let searchedIds = 0;
    const batch: Work<readonly Outcome[]> = async (client, commit) => {
      const options = { plantsMax, fullGardens, searchedIds, waitsForLocks: isApart };
      try {
        return await applyBatch(client, writes, commit, options);
      } catch (error) {
        // Clients chose ids above the counter, or somebody loaded plants without counting them.
        if (hasState(error, uniqueViolation)) {
          searchedIds = Math.max(searchedIdsMin, searchedIds * 100);
        }
        throw error;
      }
    };
    return runner.run(batch, { alsoRaces: [uniqueViolation], dueAtMs, leavesOne: isApart });
  }

  return {
    async apply(writes, { isApart = false } = {}) {
      try {
        return await applyAll(writes, isApart);
      } catch (error) {
        if (!hasState((error as Error).cause, lockNotAvailable)) throw error;
        throw new GardenLocked("A garden is locked.", { cause: error });
      }
    },

    async forgetKeys(nowMs) {
      let isMore = false;
      for (const [table, key] of keyTables) {
        // Expiry is checked twice: a key may be used again while this waits for its row.
        const { rowCount } = await runner.write(
          `DELETE FROM ${table} WHERE expires_at_ms <= $1 AND (garden, ${key}) IN (
             SELECT garden, ${key} FROM ${table}
               WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT ${forgottenKeysMax})`,
          [nowMs],
        );
        isMore ||= rowCount === forgottenKeysMax;
      }
      fullGardens.clear();
      return isMore;
    },
  };
}

function isDelete(write: Write): write is DeleteWrite {
  return write.kind === "delete";
}

function isPlainCreate(write: Write): write is CreateWrite {
  return write.kind === "create" && write.id === undefined && write.idempotency === undefined;
}

/** Of equal places the first finds the plant, and the others find it gone. */
async function deleteAll(
  runner: TransactionRunner,
  deletes: readonly DeleteWrite[],
  isCounted: boolean,
): Promise<Outcome[]> {
  const gardens = [...new Set(deletes.map(({ garden }) => garden))].sort();
  const { rows } = isCounted
    ? await runner.write(countedDeleteStatement, [...placesOf(deletes), gardens])
    : await runner.write(deleteStatement, placesOf(deletes));
  const found = new Set(rows.map(({ garden, id }) => pair(garden, id)));
  return deletes.map(({ garden, id }) => ({
    kind: found.delete(pair(garden, id)) ? "deleted" : "missing",
  }));
}

/** Also counts down the gardens, whose rows are locked in the order given. */
const countedDeleteStatement = `
  WITH locked AS (
    SELECT garden FROM unnest($3::text[]) WITH ORDINALITY AS wanted (garden, position)
      JOIN gardens USING (garden) CROSS JOIN ${briefly} ORDER BY position FOR UPDATE OF gardens),
  deleted AS (
    DELETE FROM plants WHERE (SELECT count(*) FROM locked) >= 0 AND (garden, id) IN
      (SELECT garden, id FROM unnest($1::text[], $2::bigint[]) AS wanted (garden, id))
      RETURNING garden, id),
  counted AS (
    UPDATE gardens SET plants_bound = plants_bound - lost.plants
      FROM (SELECT garden, count(*) AS plants FROM deleted GROUP BY garden) AS lost
      WHERE gardens.garden = lost.garden)
  SELECT garden, id FROM deleted`;

/**
 * The most common group in one statement, which is one round trip: the counters move by the number
 * of plants, and the plants get the ids up to there. Absent when an id is taken, none is left, or a
 * garden may have no room: then the constraints have refused all of it.
 */
async function createAll(
  runner: TransactionRunner,
  writes: readonly CreateWrite[],
  plantsMax: number | undefined,
): Promise<Outcome[] | undefined> {
  const counts = new Map<string, number>();
  /** How many plants of its garden come after each. */
  const after = writes.map(() => 0);
  for (const [index, { garden }] of [...writes.entries()].reverse()) {
    const count = counts.get(garden) ?? 0;
    after[index] = count;
    counts.set(garden, count + 1);
  }
  const gardens = [...counts.keys()].sort();
  let result: QueryResult<{ garden: string; last_id: PlantId }>;
  try {
    const values = [
      gardens,
      gardens.map((garden) => counts.get(garden)),
      writes.map(({ garden }) => garden),
      after,
      writes.map(({ name }) => name),
      writes.map(({ tag }) => tag),
    ];
    result = await runner.write(createStatement(plantsMax), values);
  } catch (error) {
    if (hasState(error, ...creationFailures)) return undefined;
    throw error;
  }
  const lastIds = new Map(result.rows.map(({ garden, last_id }) => [garden, last_id]));
  return writes.map(({ garden }, index) => {
    const id = (lastIds.get(garden) ?? 0n) - BigInt(after[index] ?? 0);
    return { kind: "created", id, replayed: false };
  });
}

/**
 * With a quota, `plants_bound` becomes null if the garden is full or was never counted. Its plants
 * then get a null id, NOT NULL refuses the statement, and the batch takes over.
 */
function createStatement(plantsMax: number | undefined): string {
  const isLimited = plantsMax !== undefined;
  const isEmpty = "(SELECT id FROM plants WHERE plants.garden = wanted.garden LIMIT 1) IS NULL";
  const bound = "gardens.plants_bound + excluded.last_id";
  const id = "last_id - after";
  return `
  WITH counted AS (
    INSERT INTO gardens (garden, last_id, plants_bound)
      SELECT garden, added,
          ${isLimited ? `CASE WHEN added <= ${plantsMax} AND ${isEmpty} THEN added END` : "NULL"}
        FROM unnest($1::text[], $2::bigint[]) AS wanted (garden, added) CROSS JOIN ${briefly}
      ON CONFLICT (garden) DO UPDATE SET last_id = gardens.last_id + excluded.last_id,
        plants_bound = ${isLimited ? `CASE WHEN ${bound} <= ${plantsMax} THEN ${bound} END` : bound}
      RETURNING garden, last_id, plants_bound),
  stored AS (
    INSERT INTO plants (garden, id, name, tag)
      SELECT garden, ${isLimited ? `CASE WHEN plants_bound IS NOT NULL THEN ${id} END` : id}, name, tag
        FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[])
          AS plant (garden, after, name, tag)
        JOIN counted USING (garden))
  SELECT garden, last_id FROM counted`;
}
