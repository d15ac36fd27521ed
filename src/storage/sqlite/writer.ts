/**
 * Applies a group of writes to a SQLite connection in one durable transaction: looks up what the
 * rules ask for, and stores what they decide. Runs in the worker.
 */
import type { Database } from "bun:sqlite";
import { toBytes } from "../../domain/keys.ts";
import type { PlantId } from "../../domain/plant.ts";
import { decide, type GardenChanges, type HashedWrite, type LookUp } from "../../domain/rules.ts";
import type { Outcome, TokenUse } from "../../domain/storage.ts";
import type { WriterOptions } from "../storage.ts";
import { mapCommitError } from "./errors.ts";

/** Small, so that waiting writes aren't held up. */
const forgottenKeysMax = 1_000;
const forgottenEventsMax = 1_000;

export interface Writer {
  apply(writes: readonly HashedWrite[]): readonly Outcome[];
  forgetKeys(nowMs: number): boolean;
  /** Returns whether the garden may still have events from before that time. */
  forgetEvents(garden: string, beforeMs: number): boolean;
  noteTokenUses(uses: readonly TokenUse[]): void;
}

export function createWriter(database: Database, options: WriterOptions = {}): Writer {
  const { plantsMax, withoutEvents = false } = options;
  const begin = database.query("BEGIN IMMEDIATE");
  const commit = database.query("COMMIT");
  const lookUp = createLookUp(database);
  const store = prepareStore(database, withoutEvents);
  const forgetKeys = database.query<{ garden: string }, [number]>(
    `DELETE FROM idempotency_keys WHERE (garden, key) IN (
       SELECT garden, key FROM idempotency_keys
         WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${forgottenKeysMax})
       RETURNING garden`,
  );
  const countForgotten = database.query("UPDATE gardens SET keys = keys - ? WHERE garden = ?");
  // The oldest ones only: a later one may be older by the clock of another machine.
  const forgetEvents = database.query<null, [string, string, number]>(
    `DELETE FROM events WHERE garden = ? AND seq < (
       SELECT coalesce(min(seq) FILTER (WHERE at_ms >= ?3), max(seq) + 1) FROM (
         SELECT seq, at_ms FROM events WHERE garden = ?2
           ORDER BY seq LIMIT ${forgottenEventsMax}))`,
  );
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

    forgetEvents(garden, beforeMs) {
      const { changes } = transact(() => forgetEvents.run(garden, garden, beforeMs));
      return changes === forgottenEventsMax;
    },

    noteTokenUses(uses) {
      transact(() => {
        for (const { id, usedAtMs } of uses) noteUse.run(usedAtMs, id);
      });
    },
  };
}

function createLookUp(database: Database): LookUp {
  const findGarden = database.query<
    Record<"last_id" | "plants" | "keys" | "last_event", bigint>,
    [string]
  >("SELECT last_id, plants, keys, last_event FROM gardens WHERE garden = ?");
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
      return {
        lastId: row.last_id,
        plants: Number(row.plants),
        keys: Number(row.keys),
        lastEvent: Number(row.last_event),
      };
    },
    plant: (garden, id) => findPlant.get(garden, id) ?? undefined,
    key(garden, rowKey) {
      const found = findKey.get(garden, toBytes(rowKey));
      if (found === null) return undefined;
      return { entries: found.entries, expiresAtMs: Number(found.expires_at_ms) };
    },
  };
}

function prepareStore(
  database: Database,
  withoutEvents: boolean,
): (changes: GardenChanges) => void {
  const storeGarden = database.query(
    `INSERT INTO gardens (garden, last_id, plants, keys, last_event) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET last_id = excluded.last_id, plants = excluded.plants,
         keys = excluded.keys, last_event = excluded.last_event`,
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
  const storeEvent = database.query(
    `INSERT INTO events (garden, seq, at_ms, type, user, id, name, tag)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (changes) => {
    const { garden, lastId, plants, keys, lastEvent, inserted, replaced, deleted } = changes;
    storeGarden.run(garden, lastId, plants, keys, lastEvent);
    for (const { id, name, tag } of inserted) insertPlant.run(garden, id, name, tag);
    for (const { id, name, tag } of replaced) replacePlant.run(name, tag, garden, id);
    for (const id of deleted) deletePlant.run(garden, id);
    for (const { rowKey, entries, expiresAtMs } of changes.keyRows) {
      storeKey.run(garden, toBytes(rowKey), entries, expiresAtMs);
    }
    if (withoutEvents) return;
    for (const { seq, atMs, type, user, id, name, tag } of changes.events) {
      storeEvent.run(garden, seq, atMs, type, user, id, name, tag);
    }
  };
}
