/** Tokens where somebody has emptied the tables. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { issueToken } from "../../auth/opaque-token.ts";
import type { Storage } from "../../domain/storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(60_000);

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

test("are stored, and their revocations counted, also when the count was emptied", async () => {
  await database.query("TRUNCATE token_changes");
  const { record } = await issueToken(storage, { user: "alice" }, 0);
  expect(await storage.listTokens()).toEqual([record]);
  expect(await storage.countTokenChanges()).toBe(1);
  await storage.revokeToken(record.id, 1);
  expect(await storage.countTokenChanges()).toBe(2);
});

test("that are moved there are counted, and later ones come behind them", async () => {
  const { record } = await issueToken(storage, { user: "alice" }, 0);
  await database.query("TRUNCATE tokens, token_changes");
  await storage.transfer(0).add("tokens", [{ ...record, position: 7n }]);
  expect(await storage.countTokenChanges()).toBe(8);
  await storage.transfer(0).add("tokens", []);
  expect(await storage.countTokenChanges()).toBe(9);
  const later = await issueToken(storage, { user: "bob" }, 0);
  expect((await storage.listTokens()).map(({ id }) => id)).toEqual([record.id, later.record.id]);
});
