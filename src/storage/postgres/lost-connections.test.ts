/** Connections that are lost, fall silent or lead to the wrong server, and outages. */
import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { FaultyProxy } from "../../../testing/faulty-proxy.ts";
import { makeDatabase, type TestDatabase } from "../../../testing/postgres-server.ts";
import { waitFor } from "../../../testing/running-service.ts";
import { create, emptyTables } from "../../../testing/tested-storage.ts";
import type { ConnectionLimits, Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

/** So long that a busy machine meets neither. Tests of a limit set it to a second. */
const limits = { poolSize: 1, connectTimeoutMs: 60_000, statementTimeoutMs: 60_000 };

let database: TestDatabase;
let proxy: FaultyProxy;
let storage: Storage;

beforeAll(async () => {
  database = await makeDatabase();
});
afterAll(() => database.drop());

async function open(own: Partial<ConnectionLimits> = {}): Promise<void> {
  proxy = await FaultyProxy.open(database.url);
  storage = await openPostgres(proxy.url, { isServing: true, limits: { ...limits, ...own } });
}

afterEach(async () => {
  await storage.close();
  proxy.close();
  await database.query(emptyTables);
});

/** Ends all connections, and waits until the pool knows it. */
async function cutAll() {
  proxy.cut();
  await waitFor(() => storage.pool?.().idle === 0 || undefined);
  proxy.connections = 0;
}

async function waitUntilNoneArrives() {
  for (let seen = -1; seen !== proxy.connections; await Bun.sleep(100)) seen = proxy.connections;
}

const list = async () => storage.list("home", undefined, 9);
const codeOf = ({ code }: { code: string }) => code;

test("a server that accepts connections and doesn't respond gets one try per call", async () => {
  await open({ connectTimeoutMs: 1_000 });
  proxy.isSilent = true;
  await cutAll();
  const calls = [list, () => storage.apply([create()]), () => storage.ping()];
  for (const call of calls) expect(await call().catch(codeOf)).toBe("unavailable");
  await waitFor(() => proxy.connections === calls.length || undefined);
  proxy.isSilent = false;
  expect(await list()).toEqual([]);
});

test("while no connection can be made, calls wait, and succeed if it is over in time", async () => {
  await open();
  proxy.isUp = false;
  await cutAll();
  const calls = [list(), storage.apply([create({ id: 7n })]), storage.apply([create()])];
  // Each has tried.
  await waitFor(() => proxy.connections > calls.length || undefined);
  proxy.isUp = true;
  await Promise.all(calls);
  expect(await list()).toHaveLength(2);
});

test("… or fail after the connect timeout, and later ones with one try; a ping at once", async () => {
  await open({ connectTimeoutMs: 1_000 });
  proxy.isUp = false;
  await cutAll();
  const ping = await storage.ping().catch((error) => error);
  expect(ping).toMatchObject({ code: "unavailable", cause: { cause: expect.any(Error) } });
  const failing = [list().catch(codeOf), storage.apply([create()]).catch(codeOf)];
  expect(await Promise.all(failing)).toEqual(["unavailable", "unavailable"]);
  // They tried again and again. On a busy machine, a connection that they gave up arrives later.
  expect(proxy.connections).toBeGreaterThan(4);
  await waitUntilNoneArrives();
  proxy.connections = 0;
  expect(await list().catch(codeOf)).toBe("unavailable");
  expect(proxy.connections).toBe(1);
  proxy.isUp = true;
  expect(await list()).toEqual([]);
});

test("when one connection falls silent, the others are replaced with it", async () => {
  await open({ poolSize: 4, statementTimeoutMs: 1_000 });
  // Several at once, each with a connection of its own.
  await Promise.all([list(), storage.apply([create()]), storage.list("home", 0n, 99)]);
  expect(storage.pool?.().idle).toBeGreaterThan(1);
  proxy.silence();
  proxy.connections = 0;
  expect(await list().catch(codeOf)).toBe("unavailable");
  // At once, on a new connection: another silent one would fail, too.
  expect(await list()).toHaveLength(1);
  expect(proxy.connections).toBeGreaterThan(0);
});

test("a new connection to a server that takes no writes is dropped", async () => {
  await open({ connectTimeoutMs: 1_000 });
  const setting = `ALTER DATABASE ${database.name}`;
  await database.query(`${setting} SET default_transaction_read_only = on`);
  await cutAll();
  // Reads don't use it either: they could be stale.
  for (const call of [() => storage.apply([create()]), list]) {
    const { code, cause } = await call().catch((error) => error);
    expect([code, cause.cause?.code]).toEqual(["unavailable", "READ_ONLY"]);
  }
  await database.query(`BEGIN; SET TRANSACTION READ WRITE; ${setting} RESET ALL; COMMIT`);
  expect(await storage.apply([create()])).toHaveLength(1);
});
