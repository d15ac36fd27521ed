/** Settings of the role and the database that a service meets, and search paths. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { create, created, remove } from "../../../test/storage/tested-storage.ts";
import { skipsWithoutPooler, startPooler } from "../../../test/transaction-pooler.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { clientConfig } from "./connect.ts";
import { openPostgres } from "./engine.ts";
import { parseUrl } from "./url.ts";

setDefaultTimeout(120_000);

let database: TestDatabase;

beforeEach(async () => {
  database = await makeDatabase();
});

afterEach(() => database.drop());

function open(url = database.url): Promise<Storage> {
  return openPostgres(url, { isServing: true });
}

/** Why it cannot be opened. */
async function refusal(url?: string): Promise<string> {
  const failure = await open(url).catch((error) => error);
  return failure.message;
}

describe.each([
  ["synchronous_commit", "off"],
  ["client_min_messages", "error"],
])("where the role has %s = %s, confirmed writes could be lost", (name, value) => {
  beforeEach(() => database.query(`ALTER DATABASE ${database.name} SET ${name} = ${value}`));

  test("so connections set another", async () => {
    const route = { isEncrypted: false, takesOptions: true, schema: undefined };
    const client = new Client(clientConfig(parseUrl(database.url), defaultConnectionLimits, route));
    await client.connect();
    const { rows } = await client.query(`SHOW ${name}`);
    expect(rows[0][name]).not.toBe(value);
    await client.end();
    await (await open()).close();
  });

  test.skipIf(skipsWithoutPooler())("so no service starts behind a pooler", async () => {
    const pooler = await startPooler(database.url);
    expect(await refusal(pooler.url)).toContain(
      `its ${name} is ${value}, so confirmed writes could`,
    );
    await pooler.stop();
  });
});

test("where other settings are unusual, all is as usual", async () => {
  for (const setting of [
    "lock_timeout = 1",
    "default_transaction_isolation = serializable",
    "TimeZone = 'Asia/Kathmandu'",
  ]) {
    await database.query(`ALTER DATABASE ${database.name} SET ${setting}`);
  }
  const storage = await open();
  const idempotency = { key: "\\k'", nowMs: 1, expiresAtMs: 2 ** 52 };
  const keyed = create({ name: "\\n'", idempotency });
  expect(await storage.apply([create(), keyed])).toEqual([created(1n), created(2n)]);
  expect(await storage.apply([keyed])).toEqual([created(2n, true)]);
  expect(await storage.apply([remove(1n)])).toEqual([{ kind: "deleted" }]);
  expect(await storage.list("home", undefined, 9)).toMatchObject([{ id: 2n, name: "\\n'" }]);
  await storage.close();
});

test("PGOPTIONS says where the tables are, as with PostgreSQL's own tools", async () => {
  await database.query("CREATE SCHEMA elsewhere");
  process.env.PGOPTIONS = "-c search_path=elsewhere";
  try {
    const storage = await openPostgres(database.url, { isServing: true });
    await storage.close();
  } finally {
    delete process.env.PGOPTIONS;
  }
  const found = "SELECT schemaname FROM pg_tables WHERE tablename = 'plants'";
  expect(await database.query(found)).toEqual([{ schemaname: "elsewhere" }]);
});

test("connections go on to find the store when the role's search path is changed", async () => {
  const lead = (path: string) =>
    database.query(`ALTER DATABASE ${database.name} SET search_path = ${path}`);
  const schema = 'a "schema" \\ of its own';
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  await database.query(`CREATE SCHEMA ${quoted}; CREATE SCHEMA elsewhere`);
  await lead(quoted);
  const storage = await openPostgres(database.url, { isServing: true });
  await storage.apply([create()]);
  await lead("elsewhere");
  await (await openPostgres(database.url, { isServing: true })).close();
  // Enough at once that there are new connections.
  const lists = Array.from({ length: 4 }, () => storage.list("home", undefined, 10));
  expect((await Promise.all(lists)).map((plants) => plants.length)).toEqual([1, 1, 1, 1]);
  await storage.close();
});

test("another program's table in a later schema is not taken for the store's", async () => {
  await database.query("CREATE SCHEMA mine; CREATE TABLE public.plants (id bigint)");
  await database.query(`ALTER DATABASE ${database.name} SET search_path = mine, public`);
  const storage = await openPostgres(database.url, { isServing: true });
  expect(await storage.list("home", undefined, 10)).toEqual([]);
  await storage.close();
});
