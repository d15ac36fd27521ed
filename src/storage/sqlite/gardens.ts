/** Gardens in SQLite: listed and deleted. */
import type { Database } from "bun:sqlite";
import {
  deleteGarden,
  deleteGardenStatement,
  deleteRowsStatement,
  findLastEventStatement,
  type GardenListRow,
  listGardensStatement,
  toGardenRecord,
} from "../gardens.ts";
import type { GardenStorage } from "../storage.ts";

/** Prepares its statements when they are used: only commands do. */
export function createGardenStorage(database: Database): GardenStorage {
  return {
    async listGardens() {
      return database.query<GardenListRow, []>(listGardensStatement).all().map(toGardenRecord);
    },

    deleteGarden: (garden) =>
      deleteGarden({
        async findLastEvent() {
          const find = database.query<{ last_event: bigint }, [string]>(findLastEventStatement);
          return find.get(garden)?.last_event;
        },
        async deleteRows(table) {
          const remove = database.query(deleteRowsStatement(table));
          const { counter } = table;
          return database
            .transaction(() => {
              const { changes } = remove.run(garden);
              if (counter !== undefined) {
                const count = `UPDATE gardens SET ${counter} = ${counter} - ? WHERE garden = ?`;
                database.query(count).run(changes, garden);
              }
              return changes;
            })
            .immediate();
        },
        async deleteGarden(lastEvent) {
          return database.query(deleteGardenStatement).run(garden, lastEvent).changes > 0;
        },
      }),
  };
}
