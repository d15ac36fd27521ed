/** A role whose search path is changed while it is used. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { type Client, DatabaseError } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create } from "../../../test/storage-contract/tested-storage.ts";
import { defaultConnectionLimits, type Storage } from "../../domain/storage.ts";
import { openPostgres } from "./engine.ts";
import { Whereabouts } from "./whereabouts.ts";

setDefaultTimeout(60_000);

let database: TestDatabase;
let storage: Storage;

const lead = (path: string) =>
  database.query(`ALTER DATABASE ${database.name} SET search_path = ${path}`);
/** Enough at once that there are more connections. */
const listAll = () =>
  Promise.all(Array.from({ length: 4 }, () => storage.list("home", undefined, 10)));

async function countSessions(): Promise<number> {
  const [row] = await database.query(
    "SELECT sessions FROM pg_stat_database WHERE datname = current_database()",
  );
  return Number(row?.sessions);
}

/** Changes settings of the whole server, in open connections as well. */
async function reload(change: string): Promise<void> {
  await database.query(`ALTER SYSTEM ${change}`);
  await database.query("SELECT pg_reload_conf()");
}

beforeEach(async () => {
  database = await makeDatabase();
  await database.query("CREATE SCHEMA one");
  await lead("one");
  storage = await openPostgres(database.url, { isServing: true });
  await storage.apply([create({ id: 1n })]);
});

afterEach(async () => {
  await storage.close();
  await database.drop();
});

test("no connection is used that finds another store, and none that finds no store", async () => {
  await database.query("CREATE SCHEMA other");
  await lead("other");
  await (await openPostgres(database.url, { isServing: true })).close();
  await expect(listAll()).rejects.toMatchObject({ code: "unavailable" });
  await lead("nowhere");
  await expect(listAll()).rejects.toMatchObject({ code: "unavailable" });
  await lead("one");
  const listed = await waitFor(() => listAll().catch(() => undefined));
  expect(listed).toEqual(Array(4).fill([expect.objectContaining({ id: 1n })]));
});

test("a path that leads to the same store is as good", async () => {
  await database.query("CREATE SCHEMA before");
  await lead("before, one");
  expect((await listAll()).map((plants) => plants.length)).toEqual([1, 1, 1, 1]);
});

test("another program's table in a later schema is not taken for the store's", async () => {
  await database.query("CREATE SCHEMA mine; CREATE TABLE public.plants (id bigint)");
  await lead("mine, public");
  const other = await openPostgres(database.url, { isServing: true });
  expect(await other.list("home", undefined, 10)).toEqual([]);
  await other.close();
});

test("a server that leads elsewhere is not stormed", async () => {
  const limits = { ...defaultConnectionLimits, connectTimeoutMs: 500 };
  const waiting = await openPostgres(database.url, { isServing: true, limits });
  await lead("nowhere");
  await database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plantstore'
       AND datname = current_database()`,
  );
  const before = await countSessions();
  for (let lists = 0; lists < 20; lists++) {
    await expect(waiting.list("home", undefined, 10)).rejects.toMatchObject({
      code: "unavailable",
    });
  }
  // Of which one is who asks.
  expect((await countSessions()) - before).toBeLessThan(20);
  await waiting.close();
});

test("a path that is changed for open connections, too, is noticed by a health check", async () => {
  await database.query(`ALTER DATABASE ${database.name} RESET search_path`);
  await reload("SET search_path = one");
  try {
    const other = await openPostgres(database.url, { isServing: true });
    expect(await other.list("home", undefined, 10)).toHaveLength(1);
    await reload("SET search_path = nowhere");
    await waitFor(() =>
      other.ping().then(
        () => undefined,
        (error) => error,
      ),
    );
    await reload("SET search_path = one");
    const listed = () => other.list("home", undefined, 10).catch(() => undefined);
    expect(await waitFor(listed)).toHaveLength(1);
    await other.close();
  } finally {
    await reload("RESET search_path");
  }
});

test("a question that is not answered in time does not say that there is no store", async () => {
  const whereabouts = new Whereabouts();
  const answers = [async () => ({ rows: [{ id: "1", name: "one" }] }), async () => fail("57014")];
  const client = { query: () => answers.shift()?.() } as unknown as Client;
  await whereabouts.learn(client);
  await expect(whereabouts.requireSame(client)).rejects.toMatchObject({ code: "57014" });
});

function fail(code: string): never {
  throw Object.assign(new DatabaseError("", 0, "error"), { code });
}
