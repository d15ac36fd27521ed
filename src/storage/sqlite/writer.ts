/**
 * Applies a group of writes to a SQLite connection in one durable transaction: looks up what the
 * rules ask for, and stores what they decide. Runs in the worker.
 */
import type { Database } from "bun:sqlite";
import { toBytes } from "../../domain/keys.ts";
import type { PlantId } from "../../domain/plant.ts";
import { decide, type GardenChanges, type HashedWrite, type LookUp } from "../../domain/rules.ts";
import type { Outcome, TokenUse } from "../../domain/storage.ts";
import { mapCommitError } from "./errors.ts";

/** Small, so that waiting writes aren't held up. */
const forgottenKeysMax = 1_000;

export interface Writer {
  apply(writes: readonly HashedWrite[]): readonly Outcome[];
  forgetKeys(nowMs: number): boolean;
  noteTokenUses(uses: readonly TokenUse[]): void;
}

export function createWriter(database: Database, plantsMax?: number): Writer {
  const begin = database.query("BEGIN IMMEDIATE");
  const commit = database.query("COMMIT");
  const lookUp = createLookUp(database);
  const store = prepareStore(database);
  const forgetKeys = database.query<{ garden: string }, [number]>(
    `DELETE FROM idempotency_keys WHERE (garden, key) IN (
       SELECT garden, key FROM idempotency_keys
         WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${forgottenKeysMax})
       RETURNING garden`,
  );
  const countForgotten = database.query("UPDATE gardens SET keys = keys - ? WHERE garden = ?");
  const noteUse = database.query(
    `UPDATE tokens SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?) WHERE id = ?`,
  );

  function transact<Result>(work: () => Result): Result {
    begin.run();
    let isWritten = false;
    try {
      const result = work();
      isWritten = true;
      commit.run();
      return result;
    } catch (error) {
      if (database.inTransaction) database.run("ROLLBACK");
      throw isWritten ? mapCommitError(error) : error;
    }
  }

  return {
    apply(writes) {
      return transact(() => {
        const { outcomes, changes } = decide(writes, lookUp, plantsMax);
        for (const each of changes) store(each);
        return outcomes;
      });
    },

    forgetKeys(nowMs) {
      return transact(() => {
        const forgotten = forgetKeys.all(nowMs);
        for (const [garden, keys] of Map.groupBy(forgotten, ({ garden }) => garden)) {
          countForgotten.run(keys.length, garden);
        }
        return forgotten.length === forgottenKeysMax;
      });
    },

    noteTokenUses(uses) {
      transact(() => {
        for (const { id, usedAtMs } of uses) noteUse.run(usedAtMs, id);
      });
    },
  };
}

function createLookUp(database: Database): LookUp {
  const findGarden = database.query<Record<"last_id" | "plants" | "keys", bigint>, [string]>(
    "SELECT last_id, plants, keys FROM gardens WHERE garden = ?",
  );
  const findPlant = database.query<{ name: string; tag: string }, [string, PlantId]>(
    "SELECT name, tag FROM plants WHERE garden = ? AND id = ?",
  );
  const findKey = database.query<{ entries: Uint8Array; expires_at_ms: bigint }, [string, Buffer]>(
    "SELECT entries, expires_at_ms FROM idempotency_keys WHERE garden = ? AND key = ?",
  );
  return {
    garden(garden) {
      const row = findGarden.get(garden);
      if (row === null) return undefined;
      return { lastId: row.last_id, plants: Number(row.plants), keys: Number(row.keys) };
    },
    plant: (garden, id) => findPlant.get(garden, id) ?? undefined,
    key(garden, row) {
      const found = findKey.get(garden, toBytes(row));
      if (found === null) return undefined;
      return { entries: found.entries, expiresAtMs: Number(found.expires_at_ms) };
    },
  };
}

function prepareStore(database: Database): (changes: GardenChanges) => void {
  const storeGarden = database.query(
    `INSERT INTO gardens (garden, last_id, plants, keys) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE
         SET last_id = excluded.last_id, plants = excluded.plants, keys = excluded.keys`,
  );
  const insertPlant = database.query(
    "INSERT INTO plants (garden, id, name, tag) VALUES (?, ?, ?, ?)",
  );
  const replacePlant = database.query(
    "UPDATE plants SET name = ?, tag = ? WHERE garden = ? AND id = ?",
  );
  const deletePlant = database.query("DELETE FROM plants WHERE garden = ? AND id = ?");
  const storeKey = database.query(
    `INSERT INTO idempotency_keys (garden, key, entries, expires_at_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET entries = excluded.entries, expires_at_ms = excluded.expires_at_ms`,
  );
  return ({ garden, lastId, plants, keys, inserted, replaced, deleted, keyRows }) => {
    storeGarden.run(garden, lastId, plants, keys);
    for (const { id, name, tag } of inserted) insertPlant.run(garden, id, name, tag);
    for (const { id, name, tag } of replaced) replacePlant.run(name, tag, garden, id);
    for (const id of deleted) deletePlant.run(garden, id);
    for (const { key, entries, expiresAtMs } of keyRows) {
      storeKey.run(garden, toBytes(key), entries, expiresAtMs);
    }
  };
}
