/** The storage contract on both engines. `pooler.test.ts` runs it behind PgBouncer, too. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll } from "bun:test";
import { join } from "node:path";
import { openPostgres } from "../../src/storage/postgres/engine.ts";
import { openSqlite } from "../../src/storage/sqlite/engine.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { makeDatabase, type TestDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { describeStorage } from "./storage-contract.ts";
import { reuse } from "./tested-storage.ts";

describeStorage("SQLite", async () => {
  const folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: true });
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
let storage: Storage;

beforeAll(async () => {
  database = await makeDatabase();
  storage = await openPostgres(database.url, { isServing: true });
});

afterAll(async () => {
  await storage.close();
  await database.drop();
});

describeStorage("PostgreSQL", async () => reuse(storage, database));
