/**
 * Races, lost connections, unconfirmed commits: what is tried again, and what is reported. And more
 * reads than connections.
 */
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  spyOn,
  test,
} from "bun:test";
import { EventEmitter } from "node:events";
import { Client, DatabaseError, type Pool } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import {
  applyPatiently,
  create,
  created,
  emptyTables,
} from "../../../test/storage/tested-storage.ts";
import { plantIdMax, plantIdMin } from "../../domain/plant.ts";
import { GardenLocked, type Write } from "../../domain/ports.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";
import { ConnectionLost, isOutcomeUnknown, mapError } from "./errors.ts";
import { TransactionRunner } from "./transaction.ts";

setDefaultTimeout(120_000);

let database: TestDatabase;
let storage: Storage;
let intruder: Client;

beforeAll(async () => {
  database = await makeDatabase();
  const limits = { ...defaultConnectionLimits, poolSize: 2 };
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

test.each([
  ["one statement", [create(), create({ garden: "other" })]],
  ["a transaction", [create({ id: 7n }), create({ garden: "other" })]],
])("where a garden is locked, %s fails soon", async (_, group) => {
  await storage.apply([create()]);
  await intruder.query("BEGIN; SELECT FROM gardens FOR UPDATE");
  expect(await storage.apply(group).catch((error) => error)).toBeInstanceOf(GardenLocked);
  expect(await countPlants()).toBe(1);
  await intruder.query("COMMIT");
  expect(await storage.apply(group)).toHaveLength(2);
});

test("a garden that is deleted just before it is locked keeps exact counts", async () => {
  await storage.apply([create()]);
  await database.query(
    `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
     CREATE TRIGGER wait AFTER INSERT ON gardens EXECUTE FUNCTION wait()`,
  );
  await intruder.query("SELECT pg_advisory_lock(7)");
  const applying = applyPatiently(storage, [create({ id: 7n })]);
  await waitForLock();
  await intruder.query("DELETE FROM gardens; DELETE FROM plants; DELETE FROM events");
  await intruder.query("SELECT pg_advisory_unlock(7)");
  expect(await applying).toEqual([created(7n)]);
  expect([await countPlants(), await storage.countPlants("home")]).toEqual([1, 1]);
  await database.query("DROP TRIGGER wait ON gardens");
});

describe("a connection that is lost", () => {
  /** Ends the connection of the writes while they wait for their garden. */
  async function applyAndLose(...writes: Write[]) {
    await intruder.query("BEGIN; INSERT INTO gardens VALUES ('home', 0)");
    const applying = applyPatiently(storage, writes).catch((error) => error);
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

describe("on two connections,", () => {
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
    // What waited for longer than half a second is refused.
    for (const read of await reads) {
      if (read.status === "fulfilled") expect(read.value).toEqual([]);
      else expect(read.reason).toMatchObject({ code: "unavailable" });
    }
  });

  test("lists that wait at the same time each get their own plants", async () => {
    const ids = [plantIdMin, -1n, 0n, 1n, 2n, plantIdMax];
    const gardens = Array.from({ length: 150 }, (_, index) => `garden ${index}`);
    await storage.apply(
      gardens.flatMap((garden) => ids.map((id) => create({ garden, id, name: `${garden} ${id}` }))),
    );
    const expected = (garden: string, after: bigint | undefined, count: number) =>
      ids
        .filter((id) => after === undefined || id > after)
        .slice(0, count)
        .map((id) => ({ id, name: `${garden} ${id}`, tag: "" }));
    const lists = gardens.flatMap((garden, index) =>
      [undefined, ...ids].map((after) => [garden, after, index % 9] as const),
    );
    // So that no read waits too long for its turn, however busy the machine is.
    using _ = spyOn(performance, "now").mockReturnValue(performance.now());
    const pages = await Promise.all(lists.map((list) => storage.list(...list)));
    expect(pages).toEqual(lists.map((list) => expected(...list)));
  });

  test("a service that runs while a migration adds a column goes on", async () => {
    const find = () => Promise.all([storage.findToken("h"), storage.listTokens()]);
    expect(await find()).toEqual([undefined, []]);
    await database.query("ALTER TABLE tokens ADD COLUMN color text");
    await database.query("ALTER TABLE plants ADD COLUMN color text");
    expect(await find()).toEqual([undefined, []]);
    await storage.apply([create()]);
    expect(await storage.list("home", undefined, 1)).toMatchObject([{ id: 1n }]);
  });
});

describe("with connections that fail as the test says", () => {
  const lost = new ConnectionLost("Connection lost.");
  const race = Object.assign(new DatabaseError("x", 1, "error"), { code: "40001" });
  const deadlock = Object.assign(new DatabaseError("x", 1, "error"), { code: "40P01" });
  const isLost = { code: "unavailable", cause: lost };
  const isRace = { code: "unavailable", cause: race };
  const isUnknown = { message: expect.stringContaining("outcome is unknown") };

  interface Case {
    /** What the tries fail with, one after the other. The next one succeeds. */
    readonly failures: readonly Error[];
    readonly outcome: object;
    readonly tries: number;
    readonly dueMs?: number;
    /** In which tries the commit was sent. */
    readonly committing?: readonly number[];
  }

  const done = { result: "done" };

  test.each<[what: string, Case]>([
    ["a lost connection is one more try", { failures: [lost], outcome: done, tries: 2 }],
    ["… and no more", { failures: [lost, lost], outcome: isLost, tries: 2 }],
    ["… even after a race", { failures: [race, lost], outcome: isLost, tries: 2 }],
    ["races are ten tries", { failures: Array(9).fill(deadlock), outcome: done, tries: 10 }],
    ["… and no more", { failures: Array(10).fill(race), outcome: isRace, tries: 10 }],
    ["a race after its time is none", { failures: [race], outcome: isRace, tries: 1, dueMs: -1 }],
    ["and so is a loss", { failures: [lost], outcome: isLost, tries: 1, dueMs: -1 }],
    [
      "a commit that the server refused isn't unknown",
      { failures: [race, lost], committing: [1], outcome: isLost, tries: 2 },
    ],
    [
      "a commit that is lost is unknown",
      { failures: [race, lost], committing: [2], outcome: isUnknown, tries: 2 },
    ],
  ])("%s", async (_, { failures, outcome, tries, dueMs = 60_000, committing = [] }) => {
    const client = Object.assign(new EventEmitter(), {
      release() {},
      getTransactionStatus: () => "I",
    });
    const pool = { connect: async () => client } as unknown as Pool;
    const runner = new TransactionRunner(() => pool, defaultConnectionLimits);
    let tried = 0;
    const work = async (_client: unknown, announceCommit: () => void) => {
      if (committing.includes(++tried)) announceCommit();
      const failure = failures[tried - 1];
      if (failure) throw failure;
      return done;
    };
    const running = runner.run(work, { dueAtMs: performance.now() + dueMs });
    expect(await running.catch((error) => error)).toMatchObject(outcome);
    expect(tried).toBe(tries);
  });
});

describe("what the server reports", () => {
  const reported = (state: string) =>
    Object.assign(new DatabaseError("secret", 0, "error"), { code: state });

  test.each([
    ["a full disk", "53100", { code: "storage-full" }],
    ["a lock that was not got", "55P03", { code: "unavailable" }],
    ["a failure of the disk", "58030", { code: "unavailable" }],
    ["a bug", "23505", { code: "23505" }],
  ])("of %s (%s) is %j, without its message", (_, state, expected) => {
    const error = reported(state);
    const shown = mapError(error) as Error;
    expect(shown).toMatchObject(expected);
    if (shown !== error) expect(shown.message).not.toContain("secret");
  });

  test("says whether a commit may have happened", () => {
    const unknown = ["57P01", "57P02", "08006", "40003", "XX000", "58030"];
    const certain = ["23505", "40001", "40P01", "53100", "25006", "57014"];
    const states = [...unknown, ...certain];
    expect(states.filter((state) => isOutcomeUnknown(reported(state)))).toEqual(unknown);
    expect(isOutcomeUnknown(new ConnectionLost("x"))).toBe(true);
  });
});
