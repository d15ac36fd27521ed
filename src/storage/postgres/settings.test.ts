/** Databases as a service meets them: settings, search paths, other tables, row-level security. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
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

/** A busy machine takes its time to connect. */
const limits = { ...defaultConnectionLimits, connectTimeoutMs: 20_000 };

function open(url = database.url): Promise<Storage> {
  return openPostgres(url, { isServing: true, limits });
}

/** Why it cannot be opened. */
async function refusal(url?: string): Promise<string> {
  const failure = await open(url).catch((error) => error);
  return failure.message;
}

function setPath(path: string): Promise<unknown> {
  return database.query(`ALTER DATABASE ${database.name} SET search_path = ${path}`);
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

test("the server lets go of gardens whose instance has vanished within a transaction", async () => {
  const mode = { isEncrypted: false, takesOptions: true, schema: undefined };
  const client = new Client(clientConfig(parseUrl(database.url), defaultConnectionLimits, mode));
  await client.connect();
  const { rows } = await client.query("SHOW idle_in_transaction_session_timeout");
  expect(rows[0].idle_in_transaction_session_timeout).toBe("10s");
  await client.end();
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
    await (await open()).close();
  } finally {
    delete process.env.PGOPTIONS;
  }
  const found = "SELECT schemaname FROM pg_tables WHERE tablename = 'plants'";
  expect(await database.query(found)).toEqual([{ schemaname: "elsewhere" }]);
});

test("connections go on to find the store when the role's search path is changed", async () => {
  const schema = 'a "schema" \\ of its own';
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  await database.query(`CREATE SCHEMA ${quoted}; CREATE SCHEMA elsewhere`);
  await setPath(quoted);
  const storage = await open();
  await storage.apply([create()]);
  await setPath("elsewhere");
  await (await open()).close();
  // Enough at once that there are new connections.
  const lists = Array.from({ length: 4 }, () => storage.list("home", undefined, 10));
  expect((await Promise.all(lists)).map((plants) => plants.length)).toEqual([1, 1, 1, 1]);
  await storage.close();
});

test("another program's table in a later schema is not taken for the store's", async () => {
  await database.query("CREATE SCHEMA mine; CREATE TABLE public.plants (id bigint)");
  await setPath("mine, public");
  const storage = await open();
  expect(await storage.list("home", undefined, 10)).toEqual([]);
  await storage.close();
});

describe("a database that cannot be used is refused in one line and stays untouched, when", () => {
  const tables = () =>
    database.query(
      "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('public', 'newer')",
    );

  test("it holds tables of another program", async () => {
    await database.query("CREATE TABLE plants (song text)");
    expect(await refusal()).toEndWith("it holds tables of another program.");
    expect(await tables()).toEqual([{ schemaname: "public", tablename: "plants" }]);
  });

  test("another schema comes first now, whose tables would hide the store", async () => {
    await (await open()).close();
    const before = await tables();
    await database.query("CREATE SCHEMA newer");
    await setPath("newer, public");
    expect(await refusal()).toContain(
      'its store is in the schema "public", which is not the first',
    );
    expect(await tables()).toEqual(before);
    await setPath("newer");
    await (await open()).close();
    await setPath("newer, public");
    await (await open()).close();
  });

  test("its encoding cannot hold all text", async () => {
    const name = `${database.name}_latin`;
    await database.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
    const reason = await refusal(database.url.replace(database.name, name));
    await database.query(`DROP DATABASE ${name}`);
    expect(reason).toEndWith("its encoding is LATIN1, and UTF8 is needed.");
  });
});

test("row-level security that may hide plants is refused at the start, and hides nothing later", async () => {
  const role = `${database.name}_reader`;
  const secure = (how: "ENABLE" | "DISABLE") =>
    database.query(`ALTER TABLE plants ${how} ROW LEVEL SECURITY`);
  await (await open()).close();
  await database.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'secret';
     GRANT ALL ON SCHEMA public TO ${role};
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
     CREATE POLICY visible ON plants TO ${role} USING (id <> 1)`,
  );
  try {
    const url = database.url.replace(/\/\/[^@]+@/, `//${role}:secret@`);
    const storage = await open(url);
    const list = () => storage.list("home", undefined, 10);
    await storage.apply([create(), create()]);
    await secure("ENABLE");
    expect(await refusal(url)).toEndWith("the role lacks rights: BYPASSRLS on plants.");
    const works = [list, () => storage.apply([remove(1n)]), () => storage.apply([create()])];
    for (const work of works) {
      expect(await work().catch(({ code }) => code)).toBe("unavailable");
    }
    await secure("DISABLE");
    expect(await waitFor(() => list().catch(() => undefined))).toHaveLength(2);
    await storage.close();
  } finally {
    await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  }
});
