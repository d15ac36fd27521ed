/**
 * Transactions that meet another process or lose their connection: what waits, what is tried again,
 * and what is reported. Also reads that outnumber the connections.
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
  // So long that a busy machine doesn't exceed it.
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

/**
 * Resolves once exactly one connection waits for a lock, to what this expression says of it. The
 * intruder can't look: within a transaction it wouldn't see new connections.
 */
function waitForLock(expression = "pid"): Promise<unknown> {
  return waitFor(async () => {
    const rows = await database.query(
      `SELECT ${expression} FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows.length === 1 ? rows : undefined;
  });
}

/** PostgreSQL applies plain creates in one statement, and other writes in a transaction. */
describe("while another process holds a garden", () => {
  const lockHome = () =>
    intruder.query("BEGIN; SELECT FROM gardens WHERE garden = 'home' FOR UPDATE");
  const releaseHome = () => intruder.query("COMMIT");
  const keysOf = async (garden: string) => {
    const rows = await database.query("SELECT keys FROM gardens WHERE garden = $1", [garden]);
    return Number(rows[0]?.keys);
  };

  beforeEach(async () => {
    await storage.apply([create(), create({ garden: "other" })]);
  });
  afterEach(() => intruder.query("ROLLBACK"));

  test.each([
    { kind: "plain creates", writes: [create(), create({ garden: "other" })] },
    { kind: "other writes", writes: [remove(7n), create({ id: 7n, garden: "other" })] },
  ])("$kind pass over it, and are applied to other gardens", async ({ writes }) => {
    await lockHome();
    const outcomes = await storage.contended?.applyUnlessHeld(writes);
    expect(outcomes).toEqual([undefined, expect.objectContaining({ kind: "created" })]);
    expect(await storage.countPlants("home")).toBe(1);
    expect(await storage.countPlants("other")).toBe(2);
  });

  describe.each([
    { kind: "a plain create", write: create() },
    { kind: "another write", write: create({ id: 7n }) },
  ])("$kind to it", ({ write }) => {
    test("waits no longer than it was told to", async () => {
      await lockHome();
      const outcomes = await storage.contended?.applyBefore([write], performance.now() + 100);
      expect(outcomes).toEqual([undefined]);
      expect(await storage.countPlants("home")).toBe(1);
    });

    test("is applied once the garden is released", async () => {
      await lockHome();
      const applying = storage.contended?.applyBefore([write], performance.now() + 60_000);
      await waitForLock();
      await releaseHome();
      expect(await applying).toEqual([expect.objectContaining({ kind: "created" })]);
      expect(await storage.countPlants("home")).toBe(2);
    });
  });

  test("its expired keys are forgotten as soon as it's released", async () => {
    const idempotency = { key: "k", nowMs: 0, expiresAtMs: 1 };
    await storage.apply([create({ garden: "home", idempotency })]);

    await lockHome();
    const forgetting = storage.forgetKeys(1);
    await waitForLock();
    await releaseHome();
    await forgetting;

    expect(await keysOf("home")).toBe(0);
  });

  test("its many expired keys don't keep those of other gardens", async () => {
    await database.query(`INSERT INTO idempotency_keys (garden, key, entries, expires_at_ms)
      SELECT 'home', int4send(number), '', 0
        FROM generate_series(1, 2000) AS number`);
    const idempotency = { key: "k", nowMs: 0, expiresAtMs: 1 };
    await storage.apply([create({ garden: "other", idempotency })]);

    await lockHome();
    while (await storage.forgetKeys(1));

    expect(await keysOf("other")).toBe(0);
  });

  test("its expired keys are forgotten later, and other gardens' right away", async () => {
    const idempotency = { key: "k", nowMs: 0, expiresAtMs: 1 };
    await storage.apply([
      create({ garden: "home", idempotency }),
      create({ garden: "other", idempotency }),
    ]);

    await lockHome();
    await storage.forgetKeys(1);
    expect(await keysOf("home")).toBe(1);
    expect(await keysOf("other")).toBe(0);

    await releaseHome();
    await storage.forgetKeys(1);
    expect(await keysOf("home")).toBe(0);
    expect(await keysOf("other")).toBe(0);
    expect(await database.query("SELECT FROM idempotency_keys")).toEqual([]);
  });
});

test("a garden whose row is deleted just before it is locked keeps exact counts", async () => {
  await storage.apply([create()]);
  // A write makes sure that its garden has a row, then locks it. This stops it in between.
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
  expect(await storage.list("home", undefined, 9)).toHaveLength(1);
  expect(await storage.countPlants("home")).toBe(1);
  await database.query("DROP TRIGGER wait ON gardens");
});

describe("a connection that is lost", () => {
  /** Ends the connection of these writes while they wait for their garden. */
  async function applyAndLoseConnection(writes: readonly Write[]) {
    await intruder.query("BEGIN; INSERT INTO gardens VALUES ('home', 0)");
    const applying = storage.apply(writes).catch((error) => error);
    await waitForLock("pg_terminate_backend(pid)");
    await intruder.query("COMMIT");
    return applying;
  }

  /** A transaction waits for its garden before it commits. */
  const transaction = [create({ id: 1n }), create()];
  /** A plain create waits within the statement that also commits. */
  const oneStatement = [create()];

  test("before the commit is replaced, and the writes are applied once", async () => {
    const outcomes = await applyAndLoseConnection(transaction);
    expect(outcomes).toEqual([created(1n), created(2n)]);
    expect(await storage.list("home", undefined, 9)).toHaveLength(2);
  });

  test("during the commit leaves the outcome unknown", async () => {
    expect(await applyAndLoseConnection(oneStatement)).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("outcome is unknown"),
    });
  });

  test("during the commit is replaced for the next write", async () => {
    await applyAndLoseConnection(oneStatement);
    expect(await storage.apply([create()])).toMatchObject([{ kind: "created" }]);
  });
});

test("one connection is left for writes, however many lists wait", async () => {
  // Opens both connections of the pool.
  await Promise.all([storage.noteTokenUses([]), storage.list("home", undefined, 1)]);
  await intruder.query("BEGIN; LOCK TABLE plants");
  // Short lists share a statement, and longer ones don't.
  const lists = Array.from({ length: 20 }, (_, index) => storage.list("home", 1n, 10 * index));
  const listing = Promise.allSettled(lists);
  await waitForLock();

  await storage.noteTokenUses([]);

  await intruder.query("ROLLBACK");
  await listing;
});

test("lists that wait at the same time each get their own plants", async () => {
  const ids = [plantIdMin, 0n, 1n, plantIdMax];
  const gardens = Array.from({ length: 40 }, (_, index) => `garden ${index}`);
  await storage.apply(
    gardens.flatMap((garden) => ids.map((id) => create({ garden, id, name: `${garden} ${id}` }))),
  );
  const requests = gardens.flatMap((garden, index) =>
    [undefined, ...ids].map((after) => ({ garden, after, count: index % 6 })),
  );

  const lists = await Promise.all(
    requests.map(({ garden, after, count }) => storage.list(garden, after, count)),
  );

  for (const [index, { garden, after, count }] of requests.entries()) {
    const expectedIds = ids.filter((id) => after === undefined || id > after).slice(0, count);
    const expected = expectedIds.map((id) => ({ id, name: `${garden} ${id}`, tag: "" }));
    expect(lists[index]).toEqual(expected);
  }
});

/** An error as the server reports it, with this SQLSTATE. */
function reportedError(code: string): DatabaseError {
  return Object.assign(new DatabaseError("secret", 0, "error"), { code });
}

describe.each([
  { race: "a deadlock", state: "40P01" },
  { race: "a serialization failure", state: "40001" },
])("a write that $race undoes", ({ state }) => {
  /** The next inserts fail like this. A sequence isn't rolled back, so it counts them. */
  const failInserts = (count: number) =>
    database.query(`
      CREATE SEQUENCE tries;
      CREATE FUNCTION fail_insert() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF nextval('tries') <= ${count} THEN RAISE EXCEPTION 'race' USING ERRCODE = '${state}'; END IF;
          RETURN NEW;
        END $$;
      CREATE TRIGGER fail_insert BEFORE INSERT ON plants
        FOR EACH ROW EXECUTE FUNCTION fail_insert()`);
  const countTries = async () => {
    const rows = await database.query("SELECT last_value FROM tries");
    return Number(rows[0]?.last_value);
  };

  afterEach(() => database.query("DROP FUNCTION fail_insert CASCADE; DROP SEQUENCE tries"));

  test("is tried again until it is applied", async () => {
    await failInserts(3);

    const outcomes = await storage.apply([create({ id: 7n })]);

    expect(outcomes).toEqual([created(7n)]);
    expect(await countTries()).toBe(4);
  });

  test("is given up after ten tries", async () => {
    await failInserts(1_000);

    const error = await Promise.resolve(storage.apply([create({ id: 7n })])).catch(
      (reason: unknown) => reason,
    );

    expect(error).toBeInstanceOf(Error);
    expect(await countTries()).toBe(10);
  });
});

test.each([
  { failure: "a full disk", state: "53100", code: "storage-full" },
  { failure: "a failure of the disk", state: "58030", code: "unavailable" },
])("$failure is $code, without the server's message", ({ state, code }) => {
  const error = mapError(reportedError(state)) as Error;
  expect(error).toMatchObject({ code });
  expect(error.message).not.toContain("secret");
});

test("an error that only a bug can cause is passed on as it is", () => {
  const error = reportedError("23505");
  expect(mapError(error)).toBe(error);
});

test.each([
  { failure: "a shutdown", state: "57P01" },
  { failure: "a failed connection", state: "08006" },
  { failure: "an unknown completion", state: "40003" },
  { failure: "an internal error", state: "XX000" },
  { failure: "a failure of the disk", state: "58030" },
])("a commit may have happened if the server reports $failure ($state)", ({ state }) => {
  expect(isOutcomeUnknown(reportedError(state))).toBe(true);
});

test("a commit may have happened if the connection is lost", () => {
  expect(isOutcomeUnknown(new ConnectionLost("x"))).toBe(true);
});

test.each([
  { failure: "a duplicate row", state: "23505" },
  { failure: "a serialization failure", state: "40001" },
  { failure: "a full disk", state: "53100" },
  { failure: "a read-only transaction", state: "25006" },
  { failure: "a canceled statement", state: "57014" },
])("no commit has happened if the server reports $failure ($state)", ({ state }) => {
  expect(isOutcomeUnknown(reportedError(state))).toBe(false);
});
