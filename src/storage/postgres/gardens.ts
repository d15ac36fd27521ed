/** Gardens in PostgreSQL: listed and deleted. */
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
        // The garden first, which locks it, as every write does.
        for (const table of ["gardens", "events", "plants", "idempotency_keys"]) {
          await client.query(`DELETE FROM ${table} WHERE garden = $1`, [garden]);
        }
      }),
  };
}
