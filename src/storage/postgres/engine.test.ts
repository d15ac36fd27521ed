/** What a statement costs: it uses the indexes. */
import { expect, test } from "bun:test";
import { makeDatabase } from "../../../testing/postgres-server.ts";
import { waitFor } from "../../../testing/running-service.ts";
import { create, remove } from "../../../testing/tested-storage.ts";
import { openPostgres } from "./engine.ts";

test("statements use the indexes, even if they were planned for a small table or another tag", async () => {
  await using database = await makeDatabase();
  let storage = await openPostgres(database.url, { isServing: true });
  const fill = (from: number, to: number, tag = "") =>
    database.query(
      `INSERT INTO plants
         SELECT 'home', id, 'Fern', '${tag}' FROM generate_series(${from}, ${to}) AS id`,
    );
  /** How often the whole table, and the index of tags, was scanned by connections that ended. */
  const readScans = async () => {
    const open = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'plantstore'`;
    await storage.close();
    await waitFor(async () => (await database.query(open)).length === 0 || undefined);
    const [row] = await database.query(
      `SELECT seq_scan, by_tag.idx_scan FROM pg_stat_user_tables AS plants
         JOIN pg_stat_user_indexes AS by_tag USING (relid) WHERE indexrelname = 'plants_by_tag'`,
    );
    storage = await openPostgres(database.url, { isServing: true });
    return { ofTable: Number(row?.seq_scan), byTag: Number(row?.idx_scan) };
  };
  const tag = "rare";
  const readsByTag = [
    () => storage.list("home", undefined, 9, { tag }),
    () => storage.list("home", undefined, 9, { tag, charactersMax: 99 }),
    () => storage.list("home", undefined, 99, { tag }),
    () => storage.list("home", undefined, 9, { tag, order: "desc" }),
    () => storage.countByTag("home", { tag: "r", id: 0n }, 9),
  ];
  const use = async () => {
    for (const read of readsByTag) await read();
    expect(await storage.list("home", undefined, 9)).toHaveLength(9);
    await storage.list("home", undefined, 9, { charactersMax: 99 });
    await storage.list("home", undefined, 9, { order: "desc" });
    await storage.list("home", undefined, 99);
    const idempotency = { key: "k", nowMs: 0, expiresAtMs: 1_000 };
    await storage.apply([create({ idempotency }), create({ id: 1n })]);
    await storage.apply([remove(-1n)]);
  };
  await database.query("ALTER TABLE plants SET (autovacuum_enabled = off)");
  await fill(100, 160);
  await database.query("ANALYZE plants");
  const before = await readScans();
  await use();
  await fill(1_000, 20_000);
  for (let round = 0; round < 10; round++) await use();
  const between = await readScans();
  await database.query("ANALYZE plants");
  await fill(20_001, 20_001, tag);
  for (const read of readsByTag) expect(await read()).toHaveLength(1);
  const after = await readScans();
  await storage.close();
  expect([between.ofTable, after.ofTable]).toEqual([before.ofTable, before.ofTable]);
  expect(after.byTag - between.byTag).toBe(readsByTag.length);
});
