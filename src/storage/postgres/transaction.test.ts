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
  spyOn,
  test,
} from "bun:test";
import { EventEmitter } from "node:events";
import { Client, DatabaseError, type Pool } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import {
  makeDatabase,
  type PostgresServer,
  startPostgres,
  type TestDatabase,
} from "../../../test/postgres-server.ts";
import { create, created, remove } from "../../../test/storage/tested-storage.ts";
import { plantIdMax, plantIdMin } from "../../domain/plant.ts";
import { GardenLocked } from "../../domain/ports.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";
import { ConnectionLost } from "./errors.ts";
import { TransactionRunner } from "./transaction.ts";

/** Servers take their time to start. */
setDefaultTimeout(120_000);

let database: TestDatabase;
let storage: Storage;
let intruder: Client;

async function open(server?: PostgresServer, limits = defaultConnectionLimits): Promise<void> {
  database = await makeDatabase(server);
  storage = await openPostgres(database.url, { isServing: true, limits });
  intruder = new Client(database.url);
  await intruder.connect();
}

async function close(): Promise<void> {
  await intruder.end();
  await storage.close();
  await database.drop();
}

const keyed = create({ idempotency: { key: "k", nowMs: 0, expiresAtMs: 1_000 } });

/** Ends the connection of the storage, or what runs on it, once it waits for something. */
async function strike(how: "terminate" | "cancel", waitingFor: string): Promise<void> {
  await waitFor(async () => {
    const { rows } = await intruder.query(
      `SELECT pg_${how}_backend(pid) AS is_struck FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'plantstore'
           AND wait_event_type = $1`,
      [waitingFor],
    );
    return rows.length > 0 ? true : undefined;
  });
}

async function countPlants(): Promise<number> {
  return (await storage.list("home", undefined, 1_000)).length;
}

describe("transactions in each other's way", () => {
  beforeEach(() => open());
  afterEach(close);

  test.each([
    ["one statement", [create(), create({ garden: "other" })]],
    ["a transaction", [create({ id: 7n }), create({ garden: "other" })]],
  ])("fail soon where a garden is locked, for %s", async (_, group) => {
    await storage.apply([create()]);
    await intruder.query("BEGIN; SELECT FROM gardens FOR UPDATE");
    expect(await storage.apply(group).catch((error) => error)).toBeInstanceOf(GardenLocked);
    expect(await countPlants()).toBe(1);
    await intruder.query("COMMIT");
    expect(await storage.apply(group)).toHaveLength(2);
  });
});

describe("a connection that is lost", () => {
  beforeEach(() => open());
  afterEach(close);

  async function lockGarden(): Promise<void> {
    await intruder.query("BEGIN");
    await intruder.query("INSERT INTO gardens VALUES ('home', 0)");
  }

  test("before the commit is replaced, and the writes are applied once", async () => {
    await lockGarden();
    const applying = storage.apply([create({ id: 1n }), create()]);
    await strike("terminate", "Lock");
    await intruder.query("COMMIT");
    expect(await applying).toEqual([created(1n), created(2n)]);
    expect(await countPlants()).toBe(2);
  });

  test("with the commit on its way leaves the outcome unknown, and says so", async () => {
    await lockGarden();
    const applying = storage.apply([create()]).catch((error) => error);
    await strike("terminate", "Lock");
    await intruder.query("COMMIT");
    expect(await applying).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("outcome is unknown"),
    });
    expect(await storage.apply([create()])).toHaveLength(1);
  });
});

describe("on two connections,", () => {
  beforeEach(() => open(undefined, { ...defaultConnectionLimits, poolSize: 2 }));
  afterEach(close);

  test("one connection is left to writes, however many lists wait", async () => {
    // Both connections are there.
    await Promise.all([storage.noteTokenUses([]), storage.list("home", undefined, 1)]);
    await intruder.query("BEGIN; LOCK TABLE plants");
    // Of both kinds: reads that share a statement, and reads that don't.
    const lists = Array.from({ length: 20 }, (_, index) => storage.list("home", 1n, 10 * index));
    const reads = Promise.allSettled(lists);
    await waitFor(async () => {
      const { rows } = await intruder.query(
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      return rows.length === 1 || undefined;
    });
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

describe("a commit that waits for a standby", () => {
  let server: PostgresServer;

  beforeAll(async () => {
    const standby = ["-c", "synchronous_standby_names=nobody", "-c", "synchronous_commit=local"];
    server = await startPostgres(["-c", "fsync=off", ...standby]);
  });

  beforeEach(() => {
    process.env.PGOPTIONS = "-c synchronous_commit=local";
    return open(server);
  });

  afterEach(() => {
    delete process.env.PGOPTIONS;
    return close();
  });

  afterAll(() => server.stop());

  /** From now on commits wait for the standby, which is not there, or they do not. */
  async function wait(isWaiting: boolean): Promise<void> {
    process.env.PGOPTIONS = `-c synchronous_commit=${isWaiting ? "on" : "local"}`;
    await storage.close();
    storage = await openPostgres(database.url, { isServing: true });
  }

  test.each([
    ["terminate", "one statement", [keyed]],
    ["cancel", "one statement", [keyed]],
    ["terminate", "a transaction", [keyed, remove(9n)]],
  ] as const)(
    "and is told not to (%s, %s) is not reported as done, and its key settles it",
    async (how, _, group) => {
      await wait(true);
      const applying = storage.apply(group).catch((error) => error);
      await strike(how, "IPC");
      expect(await applying).toMatchObject({
        code: "unavailable",
        message: expect.stringContaining("outcome is unknown"),
      });
      await wait(false);
      expect(await storage.apply([keyed])).toEqual([created(1n, true)]);
      expect(await countPlants()).toBe(1);
    },
  );
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
