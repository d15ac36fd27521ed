/** The storage contract on both engines. `pooler.test.ts` runs it behind PgBouncer, too. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll } from "bun:test";
import { join } from "node:path";
import { openSqlite } from "../../src/storage/sqlite/engine.ts";
import { makeDatabase, type TestDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { describeStorage } from "./storage-contract.ts";
import { PostgresStorages } from "./tested-storage.ts";

describeStorage("SQLite", async (options) => {
  const folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: true, ...options });
  return {
    storage,
    openAgain: async (others) => openSqlite(path, { isServing: false, ...others }),
    async execute(sql) {
      using database = new Database(path);
      database.run(sql);
    },
    async remove() {
      await storage.close();
      folder[Symbol.dispose]();
    },
  };
});

let database: TestDatabase;
let storages: PostgresStorages;

beforeAll(async () => {
  database = await makeDatabase();
  storages = new PostgresStorages(database);
});

afterAll(async () => {
  await storages.close();
  await database.drop();
});

describeStorage("PostgreSQL", (options) => storages.make(options));
