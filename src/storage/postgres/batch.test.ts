/** Batches that meet what other programs and older versions have left in the tables. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, created, remove } from "../../../test/storage-contract/tested-storage.ts";
import { issueToken } from "../../auth/opaque-token.ts";
import { countedIdMax, type Storage } from "../../domain/storage.ts";
import { applyBatch, FullGardens } from "./batch.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

let database: TestDatabase;
let storage: Storage;

beforeEach(async () => {
  database = await makeDatabase();
  storage = await openPostgres(database.url, { isServing: true });
});

afterEach(async () => {
  await storage.close();
  await database.drop();
});

test("plants that were loaded without being counted are stepped over", async () => {
  await storage.apply([create()]);
  await database.query(
    "INSERT INTO plants SELECT 'home', id, 'Fern', '' FROM generate_series(2, 9) AS id",
  );
  expect(await storage.apply([create(), create()])).toEqual([created(10n), created(11n)]);
  expect(await storage.apply([create()])).toEqual([created(12n)]);
});

test("ids that clients chose are stepped over, however many there are in a row", async () => {
  await storage.apply([create({ id: countedIdMax })]);
  await database.query(
    `INSERT INTO plants SELECT 'home', id, 'Fern', ''
       FROM generate_series(${countedIdMax}::bigint + 2, ${countedIdMax}::bigint + 9000) AS id`,
  );
  const outcomes = await storage.apply([create(), create({ id: countedIdMax + 9_002n }), create()]);
  expect(outcomes).toEqual([1n, 9_002n, 9_001n].map((step) => created(countedIdMax + step)));
  expect(await storage.apply([create()])).toEqual([created(countedIdMax + 9_003n)]);
});

test("a key that an instance of 0.3 has kept replays", async () => {
  const request = JSON.stringify([null, "Fern", ""]);
  await database.query("INSERT INTO idempotency_keys VALUES ('home', 'k', $1, 7, 1000)", [request]);
  const keyed = (name: string, nowMs: number) =>
    create({ name, idempotency: { key: "k", nowMs, expiresAtMs: nowMs + 1_000 } });
  expect(await storage.apply([keyed("Fern", 0), keyed("other", 0)])).toEqual([
    ...[created(7n, true), { kind: "mismatch" } as const],
  ]);
  expect(await storage.apply([keyed("other", 1_000)])).toEqual([created(1n)]);
  await storage.forgetKeys(1_000);
  expect(await database.query("SELECT * FROM idempotency_keys")).toEqual([]);
});

test("tokens are stored and counted also after somebody emptied all tables", async () => {
  await database.query("TRUNCATE token_changes");
  const { record } = await issueToken(storage, { user: "alice" }, 0);
  expect(await storage.listTokens()).toEqual([record]);
  expect(await storage.countTokenChanges()).toBe(1);
  await storage.revokeToken(record.id, 1);
  expect(await storage.countTokenChanges()).toBe(2);
});

test("where BEGIN is cancelled, what was sent with it deletes nothing", async () => {
  await storage.apply([create()]);
  const client = new Client({ connectionString: database.url, pipeline: true });
  const query = client.query.bind(client) as unknown as (...query: unknown[]) => never;
  const cancelled = "DO $$ BEGIN RAISE 'cancelled' USING ERRCODE = 'query_canceled'; END $$";
  client.query = (text: unknown, ...values: unknown[]) =>
    query(String(text).startsWith("BEGIN") ? cancelled : text, ...values);
  await client.connect();
  let isCommitting = false;
  const commit = () => {
    isCommitting = true;
  };
  const options = { plantsMax: undefined, fullGardens: new FullGardens(), searchedIds: 0 };
  const applying = applyBatch(client, [create({ id: 7n }), remove(1n)], commit, options);
  expect(await applying.catch(({ code }) => code)).toBe("57014");
  await client.end();
  expect(isCommitting).toBe(false);
  expect(await storage.list("home", undefined, 9)).toMatchObject([{ id: 1n }]);
});
