/**
 * More requests than connections: who waits too long for one is refused, and who must not be is
 * not.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { overloaded } from "../../domain/errors.ts";
import { defaultConnectionLimits, type Storage } from "../../domain/storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(60_000);

const limits = { ...defaultConnectionLimits, poolSize: 2 };
const patienceMs = 500;

let database: TestDatabase;
let storage: Storage;
let intruder: Client;

beforeEach(async () => {
  database = await makeDatabase();
  storage = await openPostgres(database.url, { isServing: true, limits });
  intruder = new Client(database.url);
  await intruder.connect();
});

afterEach(async () => {
  await intruder.end();
  await storage.close();
  await database.drop();
});

/** All connections that lists may have are in use until the lock is gone. */
async function hold(): Promise<Promise<unknown>[]> {
  await intruder.query("BEGIN");
  await intruder.query("LOCK TABLE plants");
  return Array.from({ length: limits.poolSize - 1 }, list);
}

const list = () =>
  storage.list("home", undefined, 1).then(
    () => "listed",
    (error) => (error === overloaded ? "refused" : error),
  );

const release = () => intruder.query("ROLLBACK");

function count(outcomes: readonly unknown[]): Record<string, number> {
  const groups = Object.groupBy(outcomes, String);
  return Object.fromEntries(
    Object.entries(groups).map(([outcome, each]) => [outcome, each?.length ?? 0]),
  );
}

test("who waited long is refused while others wait behind, and all is well again afterwards", async () => {
  const first = await hold();
  const waiting = Array.from({ length: 10 }, list);
  await Bun.sleep(patienceMs + 100);
  await release();
  expect(await Promise.all(first)).toEqual(["listed"]);
  // The last has nobody behind it.
  expect(count(await Promise.all(waiting))).toEqual({ refused: 9, listed: 1 });
  expect(await list()).toBe("listed");
});

test("one connection is left to what is not a list, however many lists wait", async () => {
  const first = await hold();
  const waiting = Array.from({ length: 10 }, list);
  // Until the lists have the connections that they get.
  await Bun.sleep(200);
  expect(await storage.countTokenChanges()).toBe(0);
  await release();
  expect(count(await Promise.all([...first, ...waiting]))).toEqual({ listed: 11 });
});

test("who waited for another to look a token up has no more time than all others", async () => {
  const hasty = { ...limits, statementTimeoutMs: 2_500 };
  const other = await openPostgres(database.url, { isServing: true, limits: hasty });
  await intruder.query("BEGIN");
  await intruder.query("LOCK TABLE tokens");
  const sinceMs = performance.now();
  const lookUps = ["one", "other"].map((hash) => other.findToken(hash).catch(({ code }) => code));
  expect(await Promise.all(lookUps)).toEqual(["unavailable", "unavailable"]);
  // The statement timeout and a second; not two statement timeouts.
  expect(performance.now() - sinceMs).toBeLessThan(4_500);
  await release();
  await other.close();
});
