/**
 * Applies a group of writes to PostgreSQL in one transaction. Whoever creates plants locks the row
 * of their garden first, so instances take turns in a garden; constraints stop what might slip
 * through.
 */
import type { QueryResult } from "pg";
import type { PlantId } from "../../domain/plant.ts";
import type { CreateWrite, DeleteWrite, Outcome, TokenUse, Write } from "../../domain/storage.ts";
import { applyBatch, inOneOrder, noteHighGarden, Recounts } from "./batch.ts";
import { pair } from "./decide.ts";
import { hasState } from "./errors.ts";
import { deletion, type PlantPlace, placesOf } from "./statements.ts";
import type { TransactionRunner, Work } from "./transaction.ts";

/** Few enough that writers who wait behind it do not notice. */
const forgottenKeysMax = 1_000;

export interface Writer {
  apply(writes: readonly Write[]): Promise<readonly Outcome[]>;
  forgetKeys(nowMs: number): Promise<boolean>;
  noteTokenUses(uses: readonly TokenUse[]): Promise<void>;
}

export function createWriter(runner: TransactionRunner, plantsMax?: number): Writer {
  const recounts = new Recounts();
  /** Gardens whose next ids may be taken: one statement would fail for all that share it. */
  const highGardens = new Set<string>();
  const isOneStatement = (writes: readonly Write[]): writes is readonly CreateWrite[] =>
    writes.every((write) => isPlainCreate(write) && !highGardens.has(write.garden));
  return {
    async apply(writes) {
      // Where gardens can be full, one statement cannot decide, store and keep count.
      const isUnlimited = plantsMax === undefined;
      if (isUnlimited && writes.every(isDelete)) return deleteAll(runner, writes);
      // Should one statement not do, both ways together take no longer than an operation may.
      const dueAtMs = runner.dueAtMs();
      const outcomes =
        isUnlimited && isOneStatement(writes) && (await createAll(runner, writes, highGardens));
      if (outcomes) return outcomes;
      let isUncounted = false;
      const batch: Work<readonly Outcome[]> = async (client, commit) => {
        try {
          const options = { plantsMax, isUncounted, recounts, highGardens };
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
const checkViolation = "23514";

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
): Promise<Outcome[]> {
  const { rows } = await runner.write(deletion, placesOf(places));
  const found = new Set(rows.map(({ garden, id }) => pair(garden, id)));
  return places.map(({ garden, id }) => ({
    kind: found.delete(pair(garden, id)) ? "deleted" : "missing",
  }));
}

/**
 * The most common group in one statement, which is one way there and back: the counters move by the
 * number of plants, and the plants get the ids up to there. Absent when such an id is taken or none
 * is left: then the constraints have refused all of it.
 */
async function createAll(
  runner: TransactionRunner,
  writes: readonly CreateWrite[],
  highGardens: Set<string>,
): Promise<Outcome[] | undefined> {
  const counts = new Map<string, number>();
  const positions = writes.map(({ garden }) => {
    const position = (counts.get(garden) ?? 0) + 1;
    counts.set(garden, position);
    return position;
  });
  const gardens = [...counts.keys()].sort(inOneOrder((garden) => garden));
  /** How many plants of its garden come behind each. */
  const behind = writes.map(
    ({ garden }, index) => (counts.get(garden) ?? 0) - (positions[index] ?? 0),
  );
  let result: QueryResult<{ garden: string; last_id: PlantId }>;
  try {
    result = await runner.write(
      `WITH counted AS (
         INSERT INTO gardens (garden, last_id)
           SELECT garden, plants FROM unnest($1::text[], $2::bigint[]) AS wanted (garden, plants)
           ON CONFLICT (garden) DO UPDATE SET last_id = gardens.last_id + excluded.last_id,
             plants_bound = gardens.plants_bound + excluded.last_id
           RETURNING garden, last_id),
       stored AS (
         INSERT INTO plants (garden, id, name, tag)
           SELECT garden, last_id - behind, name, tag
             FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[])
               AS plant (garden, behind, name, tag)
             JOIN counted USING (garden))
       SELECT garden, last_id FROM counted`,
      [
        gardens,
        gardens.map((garden) => counts.get(garden)),
        writes.map(({ garden }) => garden),
        behind,
        writes.map(({ name }) => name),
        writes.map(({ tag }) => tag),
      ],
    );
  } catch (error) {
    if (hasState(error, uniqueViolation, checkViolation)) return undefined;
    throw error;
  }
  const lastIds = new Map(result.rows.map(({ garden, last_id }) => [garden, last_id]));
  for (const [garden, lastId] of lastIds) noteHighGarden(highGardens, garden, lastId);
  return writes.map(({ garden }, index) => {
    const id = (lastIds.get(garden) ?? 0n) - BigInt(behind[index] ?? 0);
    return { kind: "created", id, replayed: false };
  });
}
