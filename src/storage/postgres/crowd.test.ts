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
const waitingMax = 1_024;
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

/** All connections are in use until the lock is gone. */
async function hold(): Promise<Promise<unknown>[]> {
  await intruder.query("BEGIN");
  await intruder.query("LOCK TABLE plants");
  return Array.from({ length: limits.poolSize }, list);
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

test("as many wait as may, and one more is refused at once", async () => {
  const first = await hold();
  const waiting = Array.from({ length: waitingMax }, list);
  expect(await list()).toBe("refused");
  await release();
  expect(count(await Promise.all(first))).toEqual({ listed: limits.poolSize });
  const { listed = 0, refused = 0, ...others } = count(await Promise.all(waiting));
  expect(others).toEqual({});
  expect(listed + refused).toBe(waitingMax);
  expect(await list()).toBe("listed");
});

test("who waited long is refused while others wait behind, but not the look at the tokens", async () => {
  const first = await hold();
  const waiting = Array.from({ length: 10 }, list);
  const changes = storage.countTokenChanges();
  await Bun.sleep(patienceMs + 100);
  await release();
  expect(await changes).toBe(0);
  expect(count(await Promise.all(first))).toEqual({ listed: limits.poolSize });
  expect(count(await Promise.all(waiting))).toMatchObject({ refused: expect.any(Number) });
});
