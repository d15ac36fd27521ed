/** Connections that are lost, go silent or lead to a read-only server, and outages. */
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { FaultyProxy } from "../../../testing/faulty-proxy.ts";
import { makeDatabase, type TestDatabase } from "../../../testing/postgres-server.ts";
import { waitFor } from "../../../testing/running-service.ts";
import { create, emptyTables } from "../../../testing/tested-storage.ts";
import type { ConnectionLimits, Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

/** So long that a busy machine exceeds neither. A test of a limit sets it to a second. */
const limits = { poolSize: 1, connectTimeoutMs: 60_000, statementTimeoutMs: 60_000 };

let database: TestDatabase;
let proxy: FaultyProxy;
let storage: Storage;

beforeAll(async () => {
  database = await makeDatabase();
});
afterAll(() => database.drop());

/** Opens the storage by way of the proxy. */
async function open(changedLimits: Partial<ConnectionLimits> = {}): Promise<void> {
  proxy = await FaultyProxy.open(database.url);
  storage = await openPostgres(proxy.url, {
    isServing: true,
    limits: { ...limits, ...changedLimits },
  });
}

afterEach(async () => {
  await storage.close();
  proxy.close();
  await database.query(emptyTables);
});

/** Ends all connections, waits until the pool notices, and counts new ones from 0. */
async function cutConnections(): Promise<void> {
  proxy.cut();
  await waitFor(() => storage.pool?.().idle === 0 || undefined);
  proxy.connections = 0;
}

/** On a busy machine, a connection that was given up can arrive later. */
async function waitUntilNoneArrives(): Promise<void> {
  for (let seen = -1; seen !== proxy.connections; await Bun.sleep(100)) seen = proxy.connections;
}

const list = async () => storage.list("home", undefined, 9);

describe("if the server accepts connections but doesn't respond", () => {
  test("each call fails after one attempt", async () => {
    await open({ connectTimeoutMs: 1_000 });
    proxy.isSilent = true;
    await cutConnections();

    expect(await list().catch((error) => error)).toMatchObject({ code: "unavailable" });
    const writing = storage.apply([create()]).catch((error) => error);
    expect(await writing).toMatchObject({ code: "unavailable" });
    expect(await storage.ping().catch((error) => error)).toMatchObject({ code: "unavailable" });

    await waitFor(() => proxy.connections === 3 || undefined);
  });

  test("calls succeed as soon as it responds again", async () => {
    await open({ connectTimeoutMs: 1_000 });
    proxy.isSilent = true;
    await cutConnections();
    expect(await list().catch((error) => error)).toMatchObject({ code: "unavailable" });
    proxy.isSilent = false;
    expect(await list()).toEqual([]);
  });
});

describe("while no connection can be made", () => {
  test("calls wait, and succeed if that ends in time", async () => {
    await open();
    proxy.isUp = false;
    await cutConnections();
    const listing = list();
    const creatingWithId = storage.apply([create({ id: 7n })]);
    const creating = storage.apply([create()]);
    // More than three: each of them has tried.
    await waitFor(() => proxy.connections > 3 || undefined);
    proxy.isUp = true;
    await Promise.all([listing, creatingWithId, creating]);
    expect(await list()).toHaveLength(2);
  });

  test("calls try again until the connect timeout, then fail", async () => {
    await open({ connectTimeoutMs: 1_000 });
    proxy.isUp = false;
    await cutConnections();
    const listing = list().catch((error) => error);
    const creating = storage.apply([create()]).catch((error) => error);
    expect(await listing).toMatchObject({ code: "unavailable" });
    expect(await creating).toMatchObject({ code: "unavailable" });
    expect(proxy.connections).toBeGreaterThan(4);
  });

  test("calls try once after the connect timeout has passed", async () => {
    await open({ connectTimeoutMs: 1_000 });
    proxy.isUp = false;
    await cutConnections();
    expect(await list().catch((error) => error)).toMatchObject({ code: "unavailable" });
    await waitUntilNoneArrives();
    proxy.connections = 0;
    expect(await list().catch((error) => error)).toMatchObject({ code: "unavailable" });
    expect(proxy.connections).toBe(1);
  });

  test("calls succeed at once when it ends after the connect timeout", async () => {
    await open({ connectTimeoutMs: 1_000 });
    proxy.isUp = false;
    await cutConnections();
    expect(await list().catch((error) => error)).toMatchObject({ code: "unavailable" });
    proxy.isUp = true;
    expect(await list()).toEqual([]);
  });

  test("a ping fails with the reason", async () => {
    await open({ connectTimeoutMs: 1_000 });
    proxy.isUp = false;
    await cutConnections();
    expect(await storage.ping().catch((error) => error)).toMatchObject({
      code: "unavailable",
      cause: { cause: expect.any(Error) },
    });
  });
});

test("when one connection goes silent, the others are replaced with it", async () => {
  await open({ poolSize: 4, statementTimeoutMs: 1_000 });
  // Several calls at the same time, each on a connection of its own.
  await Promise.all([list(), storage.apply([create()]), storage.list("home", 0n, 99)]);
  expect(storage.pool?.().idle).toBeGreaterThan(1);
  proxy.silence();
  proxy.connections = 0;

  expect(await list().catch((error) => error)).toMatchObject({ code: "unavailable" });

  // On one of the other connections, which are silent as well, this would fail.
  expect(await list()).toHaveLength(1);
  expect(proxy.connections).toBeGreaterThan(0);
});

describe("if a new connection leads to a server that takes no writes", () => {
  const takeNoWrites = () =>
    database.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`);
  const takeWrites = () =>
    database.query(
      `BEGIN; SET TRANSACTION READ WRITE; ALTER DATABASE ${database.name} RESET ALL; COMMIT`,
    );

  afterEach(takeWrites);

  test("a write fails", async () => {
    await open({ connectTimeoutMs: 1_000 });
    await takeNoWrites();
    await cutConnections();
    const writing = storage.apply([create()]).catch((error) => error);
    expect(await writing).toMatchObject({
      code: "unavailable",
      cause: { cause: { code: "READ_ONLY" } },
    });
  });

  test("a read fails, too: its plants could be stale", async () => {
    await open({ connectTimeoutMs: 1_000 });
    await takeNoWrites();
    await cutConnections();
    expect(await list().catch((error) => error)).toMatchObject({
      code: "unavailable",
      cause: { cause: { code: "READ_ONLY" } },
    });
  });

  test("writes succeed again once it takes them", async () => {
    await open({ connectTimeoutMs: 1_000 });
    await takeNoWrites();
    await cutConnections();
    const refused = storage.apply([create()]).catch((error) => error);
    expect(await refused).toMatchObject({ code: "unavailable" });
    await takeWrites();
    expect(await storage.apply([create()])).toMatchObject([{ kind: "created" }]);
  });
});
