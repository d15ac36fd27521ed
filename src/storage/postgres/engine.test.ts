/** The PostgreSQL engine: the storage contract, on a real server. */
import { afterAll, beforeAll } from "bun:test";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { describeStorage } from "../../../test/storage-contract/storage-contract.ts";
import { openPostgres } from "./engine.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await makeDatabase();
});
afterAll(() => database.drop());

describeStorage("PostgreSQL", async (options) => {
  const storage = await openPostgres(database.url, { isServing: true, ...options });
  return {
    storage,
    openAgain: (others) => openPostgres(database.url, { isServing: false, ...others }),
    execute: (sql) => database.query(sql),
    async remove() {
      await storage.close();
      // Emptying the tables takes far less time than a new database for each test.
      const tables = ["plants", "gardens", "idempotency_hashes", "tokens"];
      await database.query(tables.map((table) => `DELETE FROM ${table}`).join("; "));
    },
  };
});
