/** Gardens in SQLite: listed and deleted. */
import type { Database } from "bun:sqlite";
import { forgottenMax } from "../event-cleanup.ts";
import { type GardenListRow, listGardensStatement, toGardenRecord } from "../rows.ts";
import type { GardenStorage } from "../storage.ts";

const pauseMs = 10;

/** Prepares its statements when they are used: only commands do. */
export function createGardenStorage(database: Database): GardenStorage {
  return {
    async listGardens() {
      return database.query<GardenListRow, []>(listGardensStatement).all().map(toGardenRecord);
    },

    async deleteGarden(garden) {
      // In small transactions, with pauses: a service may be writing to other gardens.
      while (deleteSome(database, garden) > 0) await Bun.sleep(pauseMs);
    },
  };
}

/**
 * Deletes some rows of the garden, with exact counts left, and its own row once there are no more.
 * Returns how many there were.
 */
function deleteSome(database: Database, garden: string): number {
  const remove = (table: string, key: string) =>
    database
      .query(
        `DELETE FROM ${table} WHERE garden = ?1 AND ${key} IN (
           SELECT ${key} FROM ${table} WHERE garden = ?1 ORDER BY ${key} LIMIT ${forgottenMax})`,
      )
      .run(garden).changes;
  const step = database.transaction(() => {
    const events = remove("events", "seq");
    const plants = remove("plants", "id");
    const keys = remove("idempotency_keys", "key");
    const rows = events + plants + keys;
    if (rows === 0) database.query("DELETE FROM gardens WHERE garden = ?").run(garden);
    const count = "UPDATE gardens SET plants = plants - ?, keys = keys - ? WHERE garden = ?";
    database.query(count).run(plants, keys, garden);
    return rows;
  });
  return step.immediate();
}
