/** The storage contract behind a pooler in transaction mode: nothing rests on a session. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { skipsUnless } from "../../../test/skipping.ts";
import { describeStorage } from "../../../test/storage-contract/storage-contract.ts";
import { create, created } from "../../../test/storage-contract/tested-storage.ts";
import {
  realPooler,
  startPooler,
  type TransactionPooler,
} from "../../../test/transaction-pooler.ts";
import { openPostgres } from "./engine.ts";

let database: TestDatabase;
let pooler: TransactionPooler;
let url: string;

beforeAll(async () => {
  database = await makeDatabase();
  pooler = await startPooler(database.url);
  url = pooler.url;
});

afterAll(async () => {
  await pooler.stop();
  await database.drop();
});

describeStorage("PostgreSQL behind a pooler", async (options) => {
  const storage = await openPostgres(url, { isServing: true, ...options });
  return {
    storage,
    openAgain: (others) => openPostgres(url, { isServing: false, ...others }),
    execute: (sql) => database.query(sql),
    async remove() {
      await storage.close();
      await database.query("TRUNCATE plants, gardens, idempotency_hashes, tokens");
    },
  };
});

test("names that a pooler lets us give, and then does not know, are done without", async () => {
  await database.query(`ALTER DATABASE ${database.name} SET plan_cache_mode = force_generic_plan`);
  const other = await startPooler(database.url);
  const storage = await openPostgres(other.url, { isServing: true });
  const idempotency = (key: number) => ({ key: `k${key}`, nowMs: 0, expiresAtMs: 2 ** 52 });
  const numbers = Array.from({ length: 20 }, (_, index) => index + 1);
  for (const number of numbers) {
    expect(await storage.apply([create()])).toMatchObject([{ kind: "created" }]);
    const keyed = create({ garden: "keyed", idempotency: idempotency(number) });
    expect(await storage.apply([keyed])).toEqual([created(BigInt(number))]);
    expect(await storage.list("home", undefined, 99)).toHaveLength(number);
  }
  await Promise.all(numbers.map((number) => storage.list("keyed", BigInt(number), 1)));
  await storage.close();
  await other.stop();
});

test("an index is made by two at the same time behind a pooler", async () => {
  await database.query("DROP INDEX plants_by_tag; UPDATE plantstore_schema SET version = 4");
  const opened = await Promise.all([1, 2].map(() => openPostgres(url, { isServing: true })));
  await Promise.all(opened.map((storage) => storage.close()));
  const indexes = await database.query(
    "SELECT indisvalid FROM pg_index WHERE indexrelid = 'plants_by_tag'::regclass",
  );
  expect(indexes).toEqual([{ indisvalid: true }]);
});

test("an index that the role's statement_timeout ends is made at PostgreSQL's own address", async () => {
  await using other = await makeDatabase();
  await (await openPostgres(other.url, { isServing: true })).close();
  await other.query("DROP INDEX plants_by_tag; UPDATE plantstore_schema SET version = 4");
  await other.query(`ALTER DATABASE ${other.name} SET statement_timeout = '1s'`);
  const otherPooler = await startPooler(other.url);
  // Whoever makes the index waits for its end.
  const writer = new Client(other.url);
  await writer.connect();
  await writer.query("BEGIN; INSERT INTO plants VALUES ('home', 1, 'Fern', '')");
  const failure = await openPostgres(otherPooler.url, { isServing: true }).catch((error) => error);
  expect(failure.message).toEndWith(
    "the role's statement_timeout is too short (to migrate, connect once without PgBouncer).",
  );
  const opening = openPostgres(other.url, { isServing: false });
  await Bun.sleep(1_500);
  await writer.query("COMMIT");
  await writer.end();
  await (await opening).close();
  await (await openPostgres(otherPooler.url, { isServing: true })).close();
  await otherPooler.stop();
});

test.skipIf(skipsUnless(realPooler === undefined, "for the pooler of the tests"))(
  "the pooler keeps no session, so that the above means something",
  async () => {
    const client = new Client(url);
    await client.connect();
    await client.query("SET search_path = nowhere");
    const { rows } = await client.query("SHOW search_path");
    expect(rows[0].search_path).not.toBe("nowhere");
    await client.query("BEGIN");
    const process = "SELECT pg_backend_pid() AS pid";
    const [first, second] = [await client.query(process), await client.query(process)];
    expect(first.rows).toEqual(second.rows);
    await client.query("COMMIT");
    await client.end();
  },
);
