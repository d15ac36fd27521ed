/** Races, lost connections, unconfirmed commits: what is tried again, and what is reported. */
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

async function open(server?: PostgresServer): Promise<void> {
  database = await makeDatabase(server);
  storage = await openPostgres(database.url, { isServing: true });
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

  test("in a read is replaced, and the read is done again", async () => {
    await intruder.query("BEGIN");
    await intruder.query("LOCK TABLE plants");
    const listing = storage.list("home", undefined, 10);
    await strike("terminate", "Lock");
    await intruder.query("COMMIT");
    expect(await listing).toEqual([]);
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
  /** Each try fails with the next of these, where that is one; the work has `dueMs` in all. */
  function failing(failures: readonly unknown[], dueMs = 60_000) {
    const client = Object.assign(new EventEmitter(), {
      release() {},
      getTransactionStatus: () => "I",
    });
    const pool = { connect: async () => client } as unknown as Pool;
    const runner = new TransactionRunner(() => pool, defaultConnectionLimits);
    const dueAtMs = performance.now() + dueMs;
    let tries = 0;
    return async (isCommitting: (tried: number) => boolean = () => false) => {
      const outcome = await runner
        .run(
          async (_client, commit) => {
            const failure = failures[tries++];
            if (isCommitting(tries)) commit();
            if (failure !== undefined) throw failure;
            return "done";
          },
          { dueAtMs },
        )
        .catch((error: unknown) => error);
      return { outcome, tries };
    };
  }

  const lost = new ConnectionLost("Connection lost.");
  const needsNewConnection = expect.objectContaining({ code: "unavailable", cause: lost });

  const reported = (code: string) => Object.assign(new DatabaseError("x", 1, "error"), { code });
  const race = reported("40001");
  const deadlock = reported("40P01");
  const isRace = expect.objectContaining({ code: "unavailable", cause: race });

  test("work on a connection that is lost is tried once more, and no more", async () => {
    expect(await failing([lost])()).toEqual({ outcome: "done", tries: 2 });
    expect(await failing([lost, lost])()).toEqual({ outcome: needsNewConnection, tries: 2 });
    expect(await failing([race, lost])()).toEqual({ outcome: needsNewConnection, tries: 2 });
  });

  test("after a race work is tried ten times in all, and no more", async () => {
    expect(await failing(Array(9).fill(deadlock))()).toEqual({ outcome: "done", tries: 10 });
    expect(await failing(Array(10).fill(race))()).toEqual({ outcome: isRace, tries: 10 });
  });

  test("nothing is tried again when its time is over", async () => {
    expect(await failing([race], -1)()).toEqual({ outcome: isRace, tries: 1 });
    expect(await failing([lost], -1)()).toEqual({ outcome: needsNewConnection, tries: 1 });
  });

  test("whether the outcome is unknown depends on the last try alone", async () => {
    const isFirst = (tried: number) => tried === 1;
    expect(await failing([race, lost])(isFirst)).toEqual({ outcome: needsNewConnection, tries: 2 });
    const { outcome, tries } = await failing([race, lost])((tried) => !isFirst(tried));
    expect(outcome).toMatchObject({ message: expect.stringContaining("outcome is unknown") });
    expect(tries).toBe(2);
  });
});
