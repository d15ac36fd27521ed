/** Gardens in PostgreSQL: listed and deleted. */
import { skippedEvents } from "../event-cleanup.ts";
import { listGardensStatement, toGardenRecord } from "../rows.ts";
import type { GardenStorage } from "../storage.ts";
import type { TransactionRunner } from "./transaction.ts";

export function createGardenStorage(runner: TransactionRunner): GardenStorage {
  return {
    async listGardens() {
      const { rows } = await runner.query(listGardensStatement);
      return rows.map(toGardenRecord);
    },

    deleteGarden: (garden) =>
      runner.runLong("Run the command again.", async (client) => {
        // First, because it locks the garden, as every write does.
        const { rowCount } = await client.query(emptyGardenStatement, [garden]);
        // Nothing is locked then, and nothing is there: a plant that is added now is a new one.
        if (rowCount === 0) return;
        for (const table of ["events", "plants", "idempotency_keys"]) {
          await client.query(`DELETE FROM ${table} WHERE garden = $1`, [garden]);
        }
      }),
  };
}

const emptyGardenStatement = `
  UPDATE gardens SET plants = 0, keys = 0, last_event = last_event + ${skippedEvents}
    WHERE garden = $1`;
