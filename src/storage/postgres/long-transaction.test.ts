/** A whole move in one transaction, and what its end may say. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { defaultConnectionLimits } from "../../domain/storage.ts";
import { parseAddress } from "./address.ts";
import { openPostgres } from "./engine.ts";
import { inTransaction } from "./long-transaction.ts";
import { Primary } from "./primary.ts";

setDefaultTimeout(60_000);

let database: TestDatabase;
let primary: Primary;

beforeEach(async () => {
  database = await makeDatabase();
  await (await openPostgres(database.url, { isServing: false })).close();
  primary = new Primary(parseAddress(database.url), defaultConnectionLimits);
  await primary.open();
});

afterEach(async () => {
  await primary.close();
  await database.drop();
});

function cutAll(): Promise<unknown> {
  return database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'plantstore' AND datname = current_database()`,
  );
}

test("one that only reads, and is cut off at its end, has changed nothing and says nothing else", async () => {
  const reading = inTransaction(primary, "read", 0, async (source) => {
    await source.count("plants");
    await cutAll();
  });
  const failure = await reading.catch((error) => error);
  expect(failure).toMatchObject({ code: "unavailable" });
  expect(failure.message).not.toContain("all of it, or nothing");
});

test("one that only reads cannot write", async () => {
  const writing = inTransaction(primary, "read", 0, (target) =>
    target.add("counters", [{ garden: "home", lastId: 7n }]),
  );
  await expect(writing).rejects.toThrow();
});

test("one under which commits were made careless meanwhile is not told as done", async () => {
  const writing = inTransaction(primary, "write", 0, async (target) => {
    await target.add("counters", [{ garden: "home", lastId: 7n }]);
    await database.query("ALTER SYSTEM SET synchronous_commit = off");
    await database.query("SELECT pg_reload_conf()");
    await Bun.sleep(500);
  });
  try {
    await expect(writing).rejects.toThrow(
      /^Nothing was stored in the database: its synchronous_commit is off, .+\.$/,
    );
  } finally {
    await database.query("ALTER SYSTEM RESET ALL");
    await database.query("SELECT pg_reload_conf()");
  }
  expect(await inTransaction(primary, "read", 0, (source) => source.count("counters"))).toBe(0);
});
