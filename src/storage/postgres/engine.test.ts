/** The PostgreSQL engine: the storage contract, on a real server. */
import { makeDatabase } from "../../../test/postgres-server.ts";
import { describeStorage } from "../../../test/storage-contract/storage-contract.ts";
import { openPostgres } from "./engine.ts";

describeStorage("PostgreSQL", async (options) => {
  const database = await makeDatabase();
  const storage = await openPostgres(database.url, { isServing: true, ...options });
  return {
    storage,
    openAgain: (others) => openPostgres(database.url, { isServing: false, ...others }),
    execute: (sql) => database.query(sql),
    async remove() {
      await storage.close();
      await database.drop();
    },
  };
});
