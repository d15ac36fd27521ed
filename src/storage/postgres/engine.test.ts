/** What a statement costs: it uses the indexes, and there are as few of them with more to do. */
import { expect, spyOn, test } from "bun:test";
import { Client } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase } from "../../../test/postgres-server.ts";
import { create, put, remove } from "../../../test/storage/tested-storage.ts";
import type { Write } from "../../domain/ports.ts";
import { openPostgres } from "./engine.ts";

const idempotency = (key: string, index?: number) => ({ key, index, nowMs: 0, expiresAtMs: 1_000 });

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
    await storage.apply([create({ idempotency: idempotency("k") }), create({ id: 1n })]);
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

const gardenOf = (index: number, size: number) => ({ garden: `garden ${size} ${index}` });

test.each<[what: string, roundTrips: number, write: (index: number, size: number) => Write]>([
  ["creates without ids", 1, (index) => create(gardenOf(index % 7, 0))],
  [
    "creates with keys",
    1,
    (index, size) => create({ idempotency: idempotency(`${size} ${index}`) }),
  ],
  [
    "plants of a bulk with a key",
    2,
    (index, size) => create({ idempotency: idempotency(`bulk ${size}`, index) }),
  ],
  [
    "writes of all kinds",
    2,
    (index, size) =>
      [
        create(gardenOf(index, size)),
        create({ ...gardenOf(index, size), id: BigInt(index) }),
        create({ ...gardenOf(index, size), idempotency: idempotency(`k${index % 5}`) }),
        remove(BigInt(index), `garden ${size} ${index - 1}`),
        put({ ...gardenOf(index, size), id: BigInt(index), preconditions: { ifMatch: "*" } }),
      ][index % 5] as Write,
  ],
])("%s take %d round trips, and as many statements for a thousand as for eight", async (...row) => {
  const [, expected, write] = row;
  await using database = await makeDatabase();
  const storage = await openPostgres(database.url, { isServing: true });
  const { query } = Client.prototype;
  let [roundTrips, statements, unanswered] = [0, 0, 0];
  // What is sent before all replies are back is in the same round trip, in pg's pipeline mode.
  using _ = spyOn(Client.prototype, "query").mockImplementation(function (
    this: Client,
    ...sent: unknown[]
  ) {
    statements++;
    if (unanswered++ === 0 || !this.pipeline) roundTrips++;
    return (query as (...sent: unknown[]) => Promise<unknown>)
      .apply(this, sent)
      .finally(() => unanswered--);
  } as typeof query);
  const counts = new Set<number>();
  for (const size of [8, 1_000]) {
    roundTrips = statements = 0;
    await storage.apply(Array.from({ length: size }, (_, index) => write(index, size)));
    expect(roundTrips).toBe(expected);
    counts.add(statements);
  }
  expect(counts.size).toBe(1);
  await storage.close();
});
