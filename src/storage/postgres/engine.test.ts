/** Plans: statements use the indexes, whatever the server knows of the tables. */
import { expect, test } from "bun:test";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase } from "../../../test/postgres-server.ts";
import { create, remove } from "../../../test/storage/tested-storage.ts";
import { openPostgres } from "./engine.ts";

test("a rare tag is looked up in its index, even if the planner thinks it is the only one", async () => {
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
    async () =>
      (await storage.list("home", undefined, 9, { tag: "rare", charactersMax: 99 })).at(-1)?.id,
    async () => (await storage.list("home", undefined, 99, { tag: "rare" })).at(-1)?.id,
    async () =>
      (await storage.list("home", undefined, 9, { tag: "rare", order: "desc" })).at(-1)?.id,
    async () => (await storage.countByTag("home", { tag: "r", id: 0n }, 9)).at(-1)?.lastId,
  ];
  for (const read of reads) expect(await read()).toBe(20_001n);
  // The server counts them when the connections have ended, or a second later.
  await storage.close();
  await waitFor(async () => (await readScans()) - before === reads.length || undefined);
});

test("statements that were planned while the table was small use its index when it has grown", async () => {
  await using growing = await makeDatabase();
  const storage = await openPostgres(growing.url, { isServing: true });
  await growing.query("ALTER TABLE plants SET (autovacuum_enabled = off)");
  const idempotency = { key: "k", nowMs: 0, expiresAtMs: 1_000 };
  const use = async () => {
    expect(await storage.list("home", undefined, 9)).toHaveLength(9);
    await storage.list("home", undefined, 9, { tag: "rare" });
    await storage.list("home", undefined, 9, { charactersMax: 99 });
    await storage.list("home", undefined, 9, { order: "desc" });
    await storage.list("home", undefined, 99);
    await storage.countByTag("home", { tag: "", id: 0n }, 9);
    await storage.apply([remove(-1n)]);
    await storage.apply([create({ idempotency }), create({ id: 1n }), remove(-1n)]);
  };
  await storage.apply(Array.from({ length: 60 }, () => create()));
  await growing.query("ANALYZE");
  await use();
  const readScans = () =>
    growing.query("SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'plants'");
  const [before] = await readScans();
  await growing.query(
    "INSERT INTO plants SELECT 'home', id, 'Fern', '' FROM generate_series(1000, 20000) AS id",
  );
  for (let round = 0; round < 10; round++) await use();
  await storage.close();
  const after = await waitFor(async () => {
    const [scans] = await readScans();
    return Number(scans?.idx_scan) > Number(before?.idx_scan) + 50 ? scans : undefined;
  });
  expect(after?.seq_scan).toBe(before?.seq_scan);
});
