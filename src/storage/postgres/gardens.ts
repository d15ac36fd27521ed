/** Gardens in PostgreSQL: listed and deleted. */
import {
  deleteGarden,
  deleteGardenStatement,
  deleteRowsStatement,
  findLastEventStatement,
  listGardensStatement,
  toGardenRecord,
} from "../gardens.ts";
import type { GardenStorage } from "../storage.ts";
import type { TransactionRunner } from "./transaction.ts";

const advice = "Run the command again.";

export function createGardenStorage(runner: TransactionRunner): GardenStorage {
  return {
    async listGardens() {
      const { rows } = await runner.query(listGardensStatement);
      return rows.map(toGardenRecord);
    },

    deleteGarden: (garden) =>
      deleteGarden({
        async findLastEvent() {
          const { rows } = await runner.query(findLastEventStatement, [garden]);
          return rows[0]?.last_event;
        },
        async deleteRows(table) {
          const remove = deleteRowsStatement(table);
          const text = table.counter === undefined ? remove : deleteAndCount(remove, table.counter);
          return (await runner.write(text, [garden], advice)).rowCount ?? 0;
        },
        async deleteGarden(lastEvent) {
          const values = [garden, lastEvent];
          return (await runner.write(deleteGardenStatement, values, advice)).rowCount === 1;
        },
      }),
  };
}

/** Locks the garden first, like every write. */
const deleteAndCount = (remove: string, counter: string) => `
  WITH locked AS (SELECT garden FROM gardens WHERE garden = $1 FOR UPDATE),
  removed AS (${remove} AND (SELECT count(*) FROM locked) = 1 RETURNING garden),
  counted AS (
    UPDATE gardens SET ${counter} = ${counter} - (SELECT count(*) FROM removed) WHERE garden = $1)
  SELECT garden FROM removed`;
