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
import { join } from "node:path";
import { Client, DatabaseError } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import {
  makeDatabase,
  type PostgresServer,
  startPostgres,
  type TestDatabase,
} from "../../../test/postgres-server.ts";
import { create, created, remove } from "../../../test/storage-contract/tested-storage.ts";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { GardenLocked } from "../../domain/storage.ts";
import { engineOf, openStorage } from "../open.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";
import { ConnectionLost } from "./errors.ts";
import type { PrimaryPool } from "./pool.ts";
import { createTokenStorage } from "./tokens.ts";
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

/** Resolves once somebody waits for another one's transaction. */
async function waitForLock(): Promise<void> {
  await waitFor(async () => {
    const waiting = await database.query(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
         AND wait_event_type = 'Lock'`,
    );
    return waiting.length > 0 ? true : undefined;
  });
}

async function countPlants(): Promise<number> {
  return (await storage.list("home", undefined, 1_000)).length;
}

describe("transactions in each other's way", () => {
  beforeEach(() => open());
  afterEach(close);

  test("are tried again after a deadlock", async () => {
    const group = [create({ garden: "a" }), create({ garden: "b" })];
    await storage.apply([create({ garden: "a" }), create({ garden: "b" })]);
    // Longer than the storage's, so that it is the storage that is struck.
    await intruder.query("SET deadlock_timeout = '5s'");
    await intruder.query("BEGIN");
    await intruder.query("UPDATE gardens SET last_id = last_id WHERE garden = 'b'");
    const applying = storage.apply(group, { isApart: true });
    await waitForLock();
    await intruder.query("UPDATE gardens SET last_id = last_id WHERE garden = 'a'");
    await intruder.query("COMMIT");
    expect(await applying).toEqual([created(2n), created(2n)]);
  });

  test.each([
    ["one statement", [create(), create({ garden: "other" })]],
    ["a transaction", [create({ id: 7n }), create({ garden: "other" })]],
  ])("fail soon where a garden is locked, for %s, and wait for it apart", async (_, group) => {
    await storage.apply([create()]);
    await intruder.query("BEGIN; SELECT FROM gardens FOR UPDATE");
    expect(await storage.apply(group).catch((error) => error)).toBeInstanceOf(GardenLocked);
    expect(await countPlants()).toBe(1);
    const applying = storage.apply(group, { isApart: true });
    await Bun.sleep(500);
    await intruder.query("COMMIT");
    expect(await applying).toHaveLength(2);
  });

  test("do not forget a key that is used anew while its row is waited for", async () => {
    await storage.apply([keyed]);
    await intruder.query("BEGIN");
    await intruder.query("UPDATE idempotency_keys SET expires_at_ms = 3000");
    const forgetting = storage.forgetKeys(2_000);
    await waitForLock();
    await intruder.query("COMMIT");
    await forgetting;
    expect(await database.query("SELECT 1 FROM idempotency_keys")).toHaveLength(1);
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
    const applying = storage.apply([keyed, create()], { isApart: true });
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

  test("while idle is replaced without anyone noticing", async () => {
    await storage.apply([create()]);
    for (let round = 0; round < 5; round++) {
      await strike("terminate", "Client");
      expect(await countPlants()).toBe(1);
    }
  });

  test("in a read is replaced, and the read is done again", async () => {
    await intruder.query("BEGIN");
    await intruder.query("LOCK TABLE plants");
    const listing = storage.list("home", undefined, 10);
    await strike("terminate", "Lock");
    await intruder.query("COMMIT");
    expect(await listing).toEqual([]);
  });

  test("in a backup is replaced, and the backup starts over", async () => {
    await storage.apply([create()]);
    using folder = makeTemporaryFolder();
    const path = touch(join(folder.path, "backup.db"));
    const options = { limits: defaultConnectionLimits, signal: new AbortController().signal };
    await intruder.query("BEGIN");
    await intruder.query("LOCK TABLE plants");
    const backingUp = engineOf(database.url).backup(database.url, path, options);
    await waitForLock();
    await strike("terminate", "Lock");
    await intruder.query("COMMIT");
    await backingUp;
    const file = await openStorage(path, { isServing: false });
    expect(await file.list("home", undefined, 9)).toEqual(await storage.list("home", undefined, 9));
    await file.close();
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

  test("of a restore, and is cancelled, is reported neither as done nor as undone", async () => {
    await wait(true);
    const options = { limits: defaultConnectionLimits, signal: new AbortController().signal };
    const makeFile = async (path: string) => {
      const file = await openStorage(path, { isServing: false });
      await file.apply([create()]);
      await file.close();
    };
    const restoring = engineOf(database.url)
      .restore(database.url, { ...options, mayReplace: false }, makeFile)
      .catch((error) => error.message);
    await strike("cancel", "IPC");
    expect(await restoring).toContain("holds all of the backup, or nothing");
    expect(await countPlants()).toBe(1);
  });
});

describe("with connections that fail as the test says", () => {
  const runOn = (client: unknown, dueMs = 60_000) => {
    const dueAtMs = performance.now() + dueMs;
    const use = <Result>(work: (client: unknown) => Promise<Result>) => work(client);
    return new TransactionRunner({ dueAtMs: () => dueAtMs, use } as unknown as PrimaryPool);
  };

  /** Each try fails with the next of these, where that is one; the work has `dueMs` in all. */
  function failing(failures: readonly unknown[], dueMs?: number) {
    const runner = runOn(new EventEmitter(), dueMs);
    let tries = 0;
    return async (isCommitting: (tried: number) => boolean = () => false) => {
      const outcome = await runner
        .run(async (_client, commit) => {
          const failure = failures[tries++];
          if (isCommitting(tries)) commit();
          if (failure !== undefined) throw failure;
          return "done";
        })
        .catch((error: unknown) => error);
      return { outcome, tries };
    };
  }

  const lost = new ConnectionLost("Connection lost.");
  const isLost = expect.objectContaining({ code: "unavailable", cause: lost });

  const race = Object.assign(new DatabaseError("x", 1, "error"), { code: "40001" });
  const isRace = expect.objectContaining({ code: "unavailable", cause: race });

  test("work on a connection that is lost is tried once more, and no more", async () => {
    expect(await failing([lost])()).toEqual({ outcome: "done", tries: 2 });
    expect(await failing([lost, lost])()).toEqual({ outcome: isLost, tries: 2 });
    expect(await failing([race, lost])()).toEqual({ outcome: isLost, tries: 2 });
  });

  test("after a race work is tried ten times in all, and no more", async () => {
    expect(await failing(Array(9).fill(race))()).toEqual({ outcome: "done", tries: 10 });
    expect(await failing(Array(10).fill(race))()).toEqual({ outcome: isRace, tries: 10 });
  });

  test("nothing is tried again when its time is over", async () => {
    expect(await failing([race], -1)()).toEqual({ outcome: isRace, tries: 1 });
    expect(await failing([lost], -1)()).toEqual({ outcome: isLost, tries: 1 });
  });

  test("whether the outcome is unknown depends on the last try alone", async () => {
    const isFirst = (tried: number) => tried === 1;
    expect(await failing([race, lost])(isFirst)).toEqual({ outcome: isLost, tries: 2 });
    const { outcome, tries } = await failing([race, lost])((tried) => !isFirst(tried));
    expect(outcome).toMatchObject({ message: expect.stringContaining("outcome is unknown") });
    expect(tries).toBe(2);
  });

  test("of a token whose outcome is unknown nobody is sent back with a key", async () => {
    const client = Object.assign(new EventEmitter(), { query: () => Promise.reject(lost) });
    const { revokeToken } = createTokenStorage(runOn(client));
    const failure = await revokeToken("t1", 0).catch((error) => error);
    expect(failure.message).toEndWith("so its outcome is unknown. See plantstore token list.");
  });
});
