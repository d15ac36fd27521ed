/**
 * Applies a group of writes to a SQLite connection in one durable transaction: looks up what the
 * rules ask for, and stores what they decide. Runs in the worker.
 */
import type { Database } from "bun:sqlite";
import { toBytes } from "../../domain/idempotency.ts";
import { type ContentValues, contentFields, type Plant, type PlantId } from "../../domain/plant.ts";
import type { Outcome, TokenUse, Write } from "../../domain/ports.ts";
import { decide, type GardenChanges, type LookUp } from "../../domain/rules.ts";
import { type ForgottenEvents, forgetEventsStatement, forgottenMax } from "../event-cleanup.ts";
import {
  contentColumns,
  type GardenCounters,
  type KeyEntriesRow,
  toGardenRow,
  toStoredKey,
} from "../rows.ts";
import type { WriterOptions } from "../storage.ts";
import { mapCommitError } from "./errors.ts";

const contentPlaces = contentFields.map(() => "?").join(", ");
type EventValues = [garden: string, seq: number, atMs: number, type: string, user: string, PlantId];

export interface Writer {
  apply(writes: readonly Write[]): readonly Outcome[];
  forgetKeys(nowMs: number): boolean;
  /** Returns how many it has deleted. */
  forgetEvents(...values: ForgottenEvents): number;
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
         WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${forgottenMax})
       RETURNING garden`,
  );
  const countForgotten = database.query("UPDATE gardens SET keys = keys - ? WHERE garden = ?");
  const forgetEvents = database.query<null, ForgottenEvents>(forgetEventsStatement);
  const noteUse = database.query(
    `UPDATE tokens SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?) WHERE id = ?`,
  );

  function transact<Result>(work: () => Result): Result {
    begin.run();
    let isWritten = false;
    try {
      const result = work();
      isWritten = true;
      // Syncs the log: see `synchronous` in open.ts.
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
        return forgotten.length === forgottenMax;
      });
    },

    forgetEvents(...values) {
      return transact(() => forgetEvents.run(...values)).changes;
    },

    noteTokenUses(uses) {
      transact(() => {
        for (const { id, usedAtMs } of uses) noteUse.run(usedAtMs, id);
      });
    },
  };
}

function createLookUp(database: Database): LookUp {
  const findGarden = database.query<GardenCounters, [string]>(
    "SELECT last_id, plants, keys, last_event FROM gardens WHERE garden = ?",
  );
  const findPlant = database.query<Plant, [string, PlantId]>(
    `SELECT id, ${contentColumns} FROM plants WHERE garden = ? AND id = ?`,
  );
  const findKey = database.query<KeyEntriesRow, [string, Buffer]>(
    "SELECT entries, expires_at_ms FROM idempotency_keys WHERE garden = ? AND key = ?",
  );
  return {
    garden(garden) {
      const row = findGarden.get(garden);
      return row ? toGardenRow(row) : undefined;
    },
    plant: (garden, id) => findPlant.get(garden, id) ?? undefined,
    key(garden, rowKey) {
      const found = findKey.get(garden, toBytes(rowKey));
      return found ? toStoredKey(found) : undefined;
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
  const insertPlant = database.query<null, [string, PlantId, ...ContentValues]>(
    `INSERT INTO plants (garden, id, ${contentColumns}) VALUES (?, ?, ${contentPlaces})`,
  );
  const replacePlant = database.query<null, [...ContentValues, string, PlantId]>(
    `UPDATE plants SET (${contentColumns}) = (${contentPlaces}) WHERE garden = ? AND id = ?`,
  );
  const deletePlant = database.query("DELETE FROM plants WHERE garden = ? AND id = ?");
  const storeKey = database.query(
    `INSERT INTO idempotency_keys (garden, key, entries, expires_at_ms) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET entries = excluded.entries, expires_at_ms = excluded.expires_at_ms`,
  );
  const storeEvent = database.query<null, [...EventValues, ...ContentValues]>(
    `INSERT INTO events (garden, seq, at_ms, type, user, id, ${contentColumns})
       VALUES (?, ?, ?, ?, ?, ?, ${contentPlaces})`,
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
    for (const { seq, atMs, type, user, plant } of changes.events) {
      storeEvent.run(garden, seq, atMs, type, user, plant.id, plant.name, plant.tag);
    }
  };
}
