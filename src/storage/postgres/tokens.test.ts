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
