/**
 * Races, lost connections, unconfirmed commits: what is tried again, and what is reported. And more
 * reads than connections.
 */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { Client, DatabaseError } from "pg";
import { makeDatabase, type TestDatabase } from "../../../testing/postgres-server.ts";
import { waitFor } from "../../../testing/running-service.ts";
import { create, created, emptyTables, remove } from "../../../testing/tested-storage.ts";
import { plantIdMax, plantIdMin } from "../../domain/plant.ts";
import type { Write } from "../../domain/ports.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";
import { ConnectionLost, isOutcomeUnknown, mapError } from "./errors.ts";

setDefaultTimeout(120_000);

let database: TestDatabase;
let storage: Storage;
let intruder: Client;

beforeAll(async () => {
  database = await makeDatabase();
  // Long, so that a busy machine doesn't meet it.
  const limits = { ...defaultConnectionLimits, poolSize: 2, statementTimeoutMs: 60_000 };
  storage = await openPostgres(database.url, { isServing: true, limits });
  intruder = new Client(database.url);
  await intruder.connect();
});
afterEach(() => database.query(emptyTables));
afterAll(async () => {
  await intruder.end();
  await storage.close();
  await database.drop();
});

async function countPlants(): Promise<number> {
  return (await storage.list("home", undefined, 1_000)).length;
}

/** Resolves to what waits for a lock, once that is one connection. */
function waitForLock(action = "pid"): Promise<unknown> {
  return waitFor(async () => {
    const { rows } = await intruder.query(
      `SELECT ${action} FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows.length === 1 ? rows : undefined;
  });
}

describe("while another process holds a garden", () => {
  const plain = [create(), create({ garden: "other" })];
  const other = [remove(7n), create({ id: 7n, garden: "other" })];

  beforeEach(async () => {
    await storage.apply([create(), create({ garden: "other" })]);
    await intruder.query("BEGIN; SELECT FROM gardens WHERE garden = 'home' FOR UPDATE");
  });
  afterEach(() => intruder.query("ROLLBACK"));

  test.each([
    ["plain creates", plain],
    ["other writes", other],
  ])("%s pass over it, and are applied elsewhere", async (_, writes) => {
    const outcomes = await storage.contended?.applyUnlessHeld(writes);
    expect(outcomes).toEqual([undefined, expect.objectContaining({ kind: "created" })]);
    expect([await storage.countPlants("home"), await storage.countPlants("other")]).toEqual([1, 2]);
  });

  test.each([
    ["plain creates", [create()]],
    ["other writes", [create({ id: 7n })]],
  ])("%s of its own wait for it, as long as they were told", async (_, writes) => {
    const apply = (waitMs: number) =>
      storage.contended?.applyBefore(writes, performance.now() + waitMs);
    expect(await apply(100)).toEqual([undefined]);
    const waiting = apply(60_000);
    await waitForLock();
    await intruder.query("COMMIT");
    expect(await waiting).toEqual([expect.objectContaining({ kind: "created" })]);
    expect(await storage.countPlants("home")).toBe(2);
  });

  test("its expired keys are forgotten later, and others' now", async () => {
    const idempotency = { key: "k", nowMs: 0, expiresAtMs: 1 };
    const writes = ["other", "home"].map((garden) => create({ garden, idempotency }));
    await intruder.query("COMMIT");
    await storage.apply(writes);
    await intruder.query("BEGIN; SELECT FROM gardens WHERE garden = 'home' FOR UPDATE");
    const readKeys = () => database.query("SELECT garden, keys FROM gardens ORDER BY garden");
    await storage.forgetKeys(1);
    expect((await readKeys()).map(({ keys }) => Number(keys))).toEqual([1, 0]);
    await intruder.query("COMMIT");
    await storage.forgetKeys(1);
    expect((await readKeys()).map(({ keys }) => Number(keys))).toEqual([0, 0]);
    expect(await database.query("SELECT FROM idempotency_keys")).toEqual([]);
  });
});

test("a garden that is deleted just before it is locked keeps exact counts", async () => {
  await storage.apply([create()]);
  await database.query(
    `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
     CREATE TRIGGER wait AFTER INSERT ON gardens EXECUTE FUNCTION wait()`,
  );
  await intruder.query("SELECT pg_advisory_lock(7)");
  const apply = () =>
    storage.contended?.applyBefore([create({ id: 7n })], Number.POSITIVE_INFINITY);
  const applying = apply();
  await waitForLock();
  await intruder.query("DELETE FROM gardens; DELETE FROM plants; DELETE FROM events");
  await intruder.query("SELECT pg_advisory_unlock(7)");
  expect(await applying).toEqual([undefined]);
  expect(await apply()).toEqual([created(7n)]);
  expect([await countPlants(), await storage.countPlants("home")]).toEqual([1, 1]);
  await database.query("DROP TRIGGER wait ON gardens");
});

describe("a connection that is lost", () => {
  /** Ends the connection of the writes while they wait for their garden. */
  async function applyAndLose(...writes: Write[]) {
    await intruder.query("BEGIN; INSERT INTO gardens VALUES ('home', 0)");
    const applying = storage.apply(writes).catch((error) => error);
    await waitForLock("pg_terminate_backend(pid)");
    await intruder.query("COMMIT");
    return applying;
  }

  test("before the commit is replaced, and the writes are applied once", async () => {
    expect(await applyAndLose(create({ id: 1n }), create())).toEqual([created(1n), created(2n)]);
    expect(await countPlants()).toBe(2);
  });

  test("with the commit on its way leaves the outcome unknown, and says so", async () => {
    expect(await applyAndLose(create())).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("outcome is unknown"),
    });
    expect(await storage.apply([create()])).toHaveLength(1);
  });
});

test("one connection is left to writes, however many lists wait", async () => {
  // Both connections are there.
  await Promise.all([storage.noteTokenUses([]), storage.list("home", undefined, 1)]);
  await intruder.query("BEGIN; LOCK TABLE plants");
  // Of both kinds: reads that share a statement, and reads that don't.
  const lists = Array.from({ length: 20 }, (_, index) => storage.list("home", 1n, 10 * index));
  const reads = Promise.allSettled(lists);
  await waitForLock();
  // While the lists wait.
  await storage.noteTokenUses([]);
  await intruder.query("ROLLBACK");
  await reads;
});

test("lists that wait at the same time each get their own plants", async () => {
  const ids = [plantIdMin, 0n, 1n, plantIdMax];
  const gardens = Array.from({ length: 40 }, (_, index) => `garden ${index}`);
  await storage.apply(
    gardens.flatMap((garden) => ids.map((id) => create({ garden, id, name: `${garden} ${id}` }))),
  );
  const lists = gardens.flatMap((garden, index) =>
    [undefined, ...ids].map((after) => [garden, after, index % 6] as const),
  );
  const pages = await Promise.all(lists.map((list) => storage.list(...list)));
  const expected = lists.map(([garden, after, count]) =>
    ids
      .filter((id) => after === undefined || id > after)
      .slice(0, count)
      .map((id) => ({ id, name: `${garden} ${id}`, tag: "" })),
  );
  expect(pages).toEqual(expected);
});

test.each([
  ["a full disk", "53100", { code: "storage-full" }],
  ["a failure of the disk", "58030", { code: "unavailable" }],
  ["a bug", "23505", { code: "23505" }],
])("%s (%s) is %j, without the server's message", (_, state, expected) => {
  const error = reported(state);
  const shown = mapError(error) as Error;
  expect(shown).toMatchObject(expected);
  if (shown !== error) expect(shown.message).not.toContain("secret");
});

test("what the server reports says whether a commit may have happened", () => {
  const unknown = ["57P01", "08006", "40003", "XX000", "58030"];
  const states = [...unknown, "23505", "40001", "53100", "25006", "57014"];
  expect(states.filter((state) => isOutcomeUnknown(reported(state)))).toEqual(unknown);
  expect(isOutcomeUnknown(new ConnectionLost("x"))).toBe(true);
});

function reported(code: string): DatabaseError {
  return Object.assign(new DatabaseError("secret", 0, "error"), { code });
}
