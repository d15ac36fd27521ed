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
        // Before the rest: it locks the garden, as every write does.
        const { rowCount } = await client.query("DELETE FROM gardens WHERE garden = $1", [garden]);
        if (rowCount === 0) return false;
        for (const table of ["events", "plants", "idempotency_keys"]) {
          await client.query(`DELETE FROM ${table} WHERE garden = $1`, [garden]);
        }
        return true;
      }),
  };
}
