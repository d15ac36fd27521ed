/** Batches that meet what other programs have left in the tables. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, put, remove } from "../../../test/storage-contract/tested-storage.ts";
import { issueToken } from "../../auth/opaque-token.ts";
import { prepare } from "../rules.ts";
import type { Storage } from "../storage.ts";
import { applyBatch } from "./batch.ts";
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

test("where BEGIN is cancelled, what was sent with it changes nothing", async () => {
  await storage.apply([create()]);
  const client = new Client({ connectionString: database.url, pipeline: true });
  const query = client.query.bind(client) as unknown as (...query: unknown[]) => never;
  const cancelled = "DO $$ BEGIN RAISE 'cancelled' USING ERRCODE = 'query_canceled'; END $$";
  client.query = (text: unknown, ...values: unknown[]) =>
    query(String(text).startsWith("BEGIN") ? cancelled : text, ...values);
  await client.connect();
  let isAnnounced = false;
  const applying = applyBatch(client, prepare([create({ id: 7n }), remove(1n), put({ id: 1n })]), {
    plantsMax: undefined,
    olderKeysUntilMs: 0,
    waitsForLocks: false,
    announceCommit() {
      isAnnounced = true;
    },
  });
  expect(await applying.catch(({ code }) => code)).toBe("57014");
  await client.end();
  expect(isAnnounced).toBe(false);
  expect(await storage.list("home", undefined, 9)).toEqual([{ id: 1n, name: "Fern", tag: "" }]);
  expect(await storage.countPlants("home")).toBe(1);
});

test("tokens are stored and counted also after somebody emptied all tables", async () => {
  await database.query("TRUNCATE token_changes");
  const { record } = await issueToken(storage, { user: "alice" }, 0);
  expect(await storage.listTokens()).toEqual([record]);
  expect(await storage.countTokenChanges()).toBe(1);
  await storage.revokeToken(record.id, 1);
  expect(await storage.countTokenChanges()).toBe(2);
});
