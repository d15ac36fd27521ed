/**
 * Applies a group of writes to PostgreSQL in one transaction. Whoever creates plants locks the row
 * of their garden first, so instances take turns in a garden; constraints stop what might slip
 * through.
 */
import type { QueryResult } from "pg";
import type { PlantId } from "../../domain/plant.ts";
import type { CreateWrite, DeleteWrite, Outcome, TokenUse, Write } from "../../domain/storage.ts";
import { applyBatch, HardGardens, inOneOrder, Recounts } from "./batch.ts";
import { pair } from "./decide.ts";
import { hasState } from "./errors.ts";
import {
  countedDeletion,
  createPlants,
  deletion,
  type PlantPlace,
  placesOf,
} from "./statements.ts";
import type { TransactionRunner, Work } from "./transaction.ts";

/** Few enough that writers who wait for it do not notice. */
const forgottenKeysMax = 1_000;

export interface Writer {
  apply(writes: readonly Write[]): Promise<readonly Outcome[]>;
  forgetKeys(nowMs: number): Promise<boolean>;
  noteTokenUses(uses: readonly TokenUse[]): Promise<void>;
}

export function createWriter(runner: TransactionRunner, plantsMax?: number): Writer {
  const recounts = new Recounts();
  const hardGardens = new HardGardens();
  const isOneStatement = (writes: readonly Write[]): writes is readonly CreateWrite[] =>
    writes.every((write) => isPlainCreate(write) && !hardGardens.has(write.garden));
  return {
    async apply(writes) {
      if (writes.every(isDelete)) return deleteAll(runner, writes, plantsMax !== undefined);
      // Should one statement not do, both ways together take no longer than an operation may.
      const dueAtMs = runner.dueAtMs();
      const outcomes =
        isOneStatement(writes) && (await createAll(runner, writes, hardGardens, plantsMax));
      if (outcomes) return outcomes;
      let isUncounted = false;
      const batch: Work<readonly Outcome[]> = async (client, commit) => {
        try {
          const options = { plantsMax, isUncounted, recounts, hardGardens };
          return await applyBatch(client, writes, commit, options);
        } catch (error) {
          isUncounted ||= hasState(error, uniqueViolation);
          throw error;
        }
      };
      return runner.run(batch, { alsoRaces: [uniqueViolation], dueAtMs });
    },

    async forgetKeys(nowMs) {
      let isMore = false;
      for (const [table, key] of keyTables) {
        // Expiry is checked twice: a key may be used anew while its row is waited for.
        const { rowCount } = await runner.write(
          `DELETE FROM ${table} WHERE expires_at_ms <= $1 AND (garden, ${key}) IN (
             SELECT garden, ${key} FROM ${table}
               WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT ${forgottenKeysMax})`,
          [nowMs],
        );
        isMore ||= rowCount === forgottenKeysMax;
      }
      recounts.forget();
      return isMore;
    },

    async noteTokenUses(uses) {
      await runner.write(
        `UPDATE tokens SET last_used_at_ms = used.at_ms
           FROM unnest($1::text[], $2::bigint[]) AS used (id, at_ms)
           WHERE tokens.id = used.id AND coalesce(tokens.last_used_at_ms, 0) < used.at_ms`,
        [uses.map(({ id }) => id), uses.map(({ usedAtMs }) => usedAtMs)],
      );
    },
  };
}

/** The second is of versions before 0.4. */
const keyTables = [
  ["idempotency_hashes", "key_hash"],
  ["idempotency_keys", "key"],
];

const uniqueViolation = "23505";
/** An id that is taken, none left to assign, and a garden without room. */
const creationFailures = [uniqueViolation, "23514", "23502"];

function isDelete(write: Write): write is DeleteWrite {
  return write.kind === "delete";
}

function isPlainCreate(write: Write): write is CreateWrite {
  return write.kind === "create" && write.id === undefined && write.idempotency === undefined;
}

/** Of equal places the first finds the plant, and the others find it gone. */
async function deleteAll(
  runner: TransactionRunner,
  places: readonly PlantPlace[],
  isCounted: boolean,
): Promise<Outcome[]> {
  const gardens = [...new Set(places.map(({ garden }) => garden))].sort(inOneOrder((name) => name));
  const { rows } = isCounted
    ? await runner.write(countedDeletion, [...placesOf(places), gardens])
    : await runner.write(deletion, placesOf(places));
  const found = new Set(rows.map(({ garden, id }) => pair(garden, id)));
  return places.map(({ garden, id }) => ({
    kind: found.delete(pair(garden, id)) ? "deleted" : "missing",
  }));
}

/**
 * The most common group in one statement, which is one round trip: the counters move by the number
 * of plants, and the plants get the ids up to there. Absent when an id is taken, none is left, or a
 * garden may have no room: then the constraints have refused all of it.
 */
async function createAll(
  runner: TransactionRunner,
  writes: readonly CreateWrite[],
  hardGardens: HardGardens,
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
  const gardens = [...counts.keys()].sort(inOneOrder((garden) => garden));
  let result: QueryResult<{ garden: string; last_id: PlantId }>;
  try {
    result = await runner.write(createPlants(plantsMax), [
      gardens,
      gardens.map((garden) => counts.get(garden)),
      writes.map(({ garden }) => garden),
      after,
      writes.map(({ name }) => name),
      writes.map(({ tag }) => tag),
    ]);
  } catch (error) {
    if (hasState(error, ...creationFailures)) return undefined;
    throw error;
  }
  const lastIds = new Map(result.rows.map(({ garden, last_id }) => [garden, last_id]));
  for (const [garden, lastId] of lastIds) hardGardens.note(garden, lastId);
  return writes.map(({ garden }, index) => {
    const id = (lastIds.get(garden) ?? 0n) - BigInt(after[index] ?? 0);
    return { kind: "created", id, replayed: false };
  });
}
