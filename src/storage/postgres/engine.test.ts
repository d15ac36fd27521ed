/** Statements use the indexes of the table of plants, whatever it was like when they were planned. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { makeDatabase, type TestDatabase } from "../../../testing/postgres-server.ts";
import { waitFor } from "../../../testing/running-service.ts";
import { create, remove } from "../../../testing/tested-storage.ts";
import type { Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

let database: TestDatabase;

beforeEach(async () => {
  database = await makeDatabase();
  // Makes the tables.
  await (await openPostgres(database.url, { isServing: true })).close();
  // Otherwise the server could look at the table on its own.
  await database.query("ALTER TABLE plants SET (autovacuum_enabled = off)");
});
afterEach(() => database.drop());

/** Stores a plant for each id. */
function fill({ from, to, tag = "" }: { from: number; to: number; tag?: string }) {
  return database.query(
    `INSERT INTO plants
       SELECT 'home', id, 'Fern', '${tag}' FROM generate_series(${from}, ${to}) AS id`,
  );
}

/** How often the whole table, and the index of tags, was scanned so far. */
async function countScans() {
  // A connection reports its scans when it ends.
  const open = `SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'plantstore'`;
  await waitFor(async () => (await database.query(open)).length === 0 || undefined);
  const [row] = await database.query(
    `SELECT seq_scan, by_tag.idx_scan FROM pg_stat_user_tables AS plants
       JOIN pg_stat_user_indexes AS by_tag USING (relid) WHERE indexrelname = 'plants_by_tag'`,
  );
  return { ofTable: Number(row?.seq_scan), byTag: Number(row?.idx_scan) };
}

/** Every way to read plants of one tag. */
const readsByTag = [
  (storage: Storage) => storage.list("home", undefined, 9, { tag: "rare" }),
  (storage: Storage) => storage.list("home", undefined, 9, { tag: "rare", charactersMax: 99 }),
  (storage: Storage) => storage.list("home", undefined, 99, { tag: "rare" }),
  (storage: Storage) => storage.list("home", undefined, 9, { tag: "rare", order: "desc" }),
  (storage: Storage) => storage.countByTag("home", { tag: "r", id: 0n }, 9),
];

async function readAndWrite(storage: Storage): Promise<void> {
  for (const read of readsByTag) await read(storage);
  expect(await storage.list("home", undefined, 9)).toHaveLength(9);
  await storage.list("home", undefined, 9, { charactersMax: 99 });
  await storage.list("home", undefined, 9, { order: "desc" });
  await storage.list("home", undefined, 99);
  const idempotency = { key: "k", nowMs: 0, expiresAtMs: 1_000 };
  await storage.apply([create({ idempotency }), create({ id: 1n })]);
  await storage.apply([remove(-1n)]);
}

test("a statement planned for a small table doesn't scan all of a large one", async () => {
  await fill({ from: 100, to: 160 });
  await database.query("ANALYZE plants");
  const before = await countScans();
  const storage = await openPostgres(database.url, { isServing: true });
  await readAndWrite(storage);

  await fill({ from: 1_000, to: 20_000 });
  // By default, the server would choose another plan after five executions.
  for (let round = 0; round < 10; round++) await readAndWrite(storage);

  await storage.close();
  const after = await countScans();
  expect(after.ofTable).toBe(before.ofTable);
});

test("reads by tag use the index of tags, even if the planner doesn't know the tag", async () => {
  await fill({ from: 1, to: 20_000 });
  await database.query("ANALYZE plants");
  await fill({ from: 20_001, to: 20_001, tag: "rare" });
  const before = await countScans();
  const storage = await openPostgres(database.url, { isServing: true });

  for (const read of readsByTag) expect(await read(storage)).toHaveLength(1);

  await storage.close();
  const after = await countScans();
  expect(after.ofTable).toBe(before.ofTable);
  expect(after.byTag).toBe(before.byTag + readsByTag.length);
});
