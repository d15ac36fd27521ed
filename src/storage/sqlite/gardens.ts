/** Gardens in SQLite: listed and deleted. */
import type { Database } from "bun:sqlite";
import { forgottenMax, skippedEvents } from "../event-cleanup.ts";
import { type GardenListRow, listGardensStatement, toGardenRecord } from "../rows.ts";
import type { GardenStorage } from "../storage.ts";
import { guard } from "./errors.ts";

const pauseMs = 10;

/** Prepares its statements when they are used: only commands do. */
export function createGardenStorage(database: Database): GardenStorage {
  return {
    async listGardens() {
      const rows = guard(() => database.query<GardenListRow, []>(listGardensStatement).all());
      return rows.map(toGardenRecord);
    },

    async deleteGarden(garden) {
      // In small transactions, with pauses: a service may be writing to other gardens.
      while (!guard(() => deleteSome(database, garden))) await Bun.sleep(pauseMs);
    },
  };
}

/** Deletes some rows of the garden, and keeps its counts exact. Returns whether it's empty now. */
function deleteSome(database: Database, garden: string): boolean {
  const remove = (table: string, key: string) =>
    database
      .query(
        `DELETE FROM ${table} WHERE garden = ?1 AND ${key} IN (
           SELECT ${key} FROM ${table} WHERE garden = ?1 ORDER BY ${key} LIMIT ${forgottenMax})`,
      )
      .run(garden).changes;
  const count = database.query(
    `UPDATE gardens SET plants = plants - ?, keys = keys - ?, last_event = last_event + ?
       WHERE garden = ?`,
  );
  const step = database.transaction(() => {
    const events = remove("events", "seq");
    const plants = remove("plants", "id");
    const keys = remove("idempotency_keys", "key");
    const isEmpty = Math.max(events, plants, keys) < forgottenMax;
    // With the last rows: if the command is stopped before, the garden is still listed.
    count.run(plants, keys, isEmpty ? skippedEvents : 0, garden);
    return isEmpty;
  });
  return step.immediate();
}
