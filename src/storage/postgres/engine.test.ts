/** The PostgreSQL engine: the storage contract, on a real server. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { describeStorage } from "../../../test/storage-contract/storage-contract.ts";
import { PostgresStorages } from "../../../test/storage-contract/tested-storage.ts";
import { openPostgres } from "./engine.ts";

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

test("a rare tag is looked up in its index, also where the planner takes it for the only one", async () => {
  await using crowded = await makeDatabase();
  const storage = await openPostgres(crowded.url, { isServing: true });
  await crowded.query(
    "INSERT INTO plants SELECT 'home', id, 'Fern', '' FROM generate_series(1, 20000) AS id",
  );
  await crowded.query("ANALYZE plants");
  await crowded.query("INSERT INTO plants VALUES ('home', 20001, 'Fern', 'rare')");
  const readScans = async () => {
    const [index] = await crowded.query(
      "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'plants_by_tag'",
    );
    return Number(index?.idx_scan);
  };
  const before = await readScans();
  const reads = [
    async () => (await storage.list("home", undefined, 9, { tag: "rare" })).at(-1)?.id,
    async () => (await storage.list("home", undefined, 9, { tag: "rare", textMax: 99 })).at(-1)?.id,
    () => storage.seek("home", undefined, 9, "rare"),
  ];
  for (const read of reads) expect(await read()).toBe(20_001n);
  // The server counts them when the connections have ended, or a second later.
  await storage.close();
  await waitFor(async () => (await readScans()) - before === reads.length || undefined);
});
