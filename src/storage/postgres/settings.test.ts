/** Databases as a service meets them: settings, search paths, other tables, rights, old servers. */
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
import { Client } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import {
  makeDatabase,
  runStatement,
  serverPassword,
  sharedPostgres,
  type TestDatabase,
} from "../../../test/postgres-server.ts";
import { create, created, remove } from "../../../test/storage/tested-storage.ts";
import { skipsWithoutPooler, startPooler } from "../../../test/transaction-pooler.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { clientConfig } from "./connect.ts";
import { openPostgres } from "./engine.ts";
import { parseUrl } from "./url.ts";

setDefaultTimeout(120_000);

let database: TestDatabase;
/** As the role that may do everything, and as one that has only the rights that it is given. */
let url: string;
let roleUrl: string;
const role = `role_${crypto.randomUUID().replaceAll("-", "")}`;

async function onServer(statement: string): Promise<void> {
  await runStatement((await sharedPostgres()).url("postgres"), statement);
}

beforeAll(() => onServer(`CREATE ROLE ${role} LOGIN PASSWORD '${serverPassword}'`));
beforeEach(async () => {
  database = await makeDatabase();
  url = database.url;
  roleUrl = url.replace(/\/\/[^@]+@/, `//${role}:${serverPassword}@`);
});
afterEach(() => database.drop());
afterAll(() => onServer(`DROP ROLE ${role}`));

/** A busy machine takes its time to connect. */
const limits = { ...defaultConnectionLimits, connectTimeoutMs: 20_000 };

function open(address = url): Promise<Storage> {
  return openPostgres(address, { isServing: true, limits });
}

/** Why it cannot be opened, in one line without a secret. */
async function refusal(address?: string): Promise<string> {
  const { message } = await open(address).catch((error) => error);
  expect(message).toMatch(/^Cannot open .+$/);
  expect(message).not.toContain(serverPassword);
  return message;
}

function set(setting: string): Promise<unknown> {
  return database.query(`ALTER DATABASE ${database.name} SET ${setting}`);
}

test("connections have the settings that promises rest on, whatever the role has", async () => {
  for (const setting of [
    "synchronous_commit = off",
    "client_min_messages = error",
    // So that the server lets go of gardens whose instance has vanished within a transaction.
    "idle_in_transaction_session_timeout = 0",
  ]) {
    await set(setting);
  }
  const mode = { isEncrypted: false, takesOptions: true, schema: undefined };
  const client = new Client(clientConfig(parseUrl(url), limits, mode));
  await client.connect();
  const show = async (name: string) => (await client.query(`SHOW ${name}`)).rows[0][name];
  expect(await show("synchronous_commit")).toBe("on");
  expect(await show("client_min_messages")).toBe("warning");
  expect(await show("idle_in_transaction_session_timeout")).toBe("10s");
  await client.end();
  await (await open()).close();
});

test.skipIf(skipsWithoutPooler()).each([
  ["synchronous_commit", "off"],
  ["client_min_messages", "error"],
])("behind a pooler, no service starts where %s is %s", async (name, value) => {
  await set(`${name} = ${value}`);
  const pooler = await startPooler(url);
  expect(await refusal(pooler.url)).toContain(`its ${name} is ${value}, so confirmed writes could`);
  await pooler.stop();
});

test("where other settings are unusual, all is as usual", async () => {
  for (const setting of [
    "lock_timeout = 1",
    "default_transaction_isolation = serializable",
    "TimeZone = 'Asia/Kathmandu'",
  ]) {
    await set(setting);
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
  await set(`search_path = ${quoted}`);
  const storage = await open();
  await storage.apply([create()]);
  await set("search_path = elsewhere");
  await (await open()).close();
  // Too long to share a statement, so that there are new connections.
  const lists = Array.from({ length: 4 }, () => storage.list("home", undefined, 100));
  expect((await Promise.all(lists)).map((plants) => plants.length)).toEqual([1, 1, 1, 1]);
  await storage.close();
});

test("another program's table in a later schema is not taken for the store's", async () => {
  await database.query("CREATE SCHEMA mine; CREATE TABLE public.plants (id bigint)");
  await set("search_path = mine, public");
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
    await set("search_path = newer, public");
    expect(await refusal()).toContain(
      'its store is in the schema "public", which is not the first',
    );
    expect(await tables()).toEqual(before);
    await set("search_path = newer");
    await (await open()).close();
    await set("search_path = newer, public");
    await (await open()).close();
  });

  test("its encoding cannot hold all text", async () => {
    const name = `${database.name}_latin`;
    await database.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
    const reason = await refusal(url.replace(database.name, name));
    await database.query(`DROP DATABASE ${name}`);
    expect(reason).toEndWith("its encoding is LATIN1, and UTF8 is needed.");
  });
});

describe("a role", () => {
  const grant = (rights: string) =>
    database.query(`GRANT ${rights} ON ALL TABLES IN SCHEMA public TO ${role}`);

  test("from whom row-level security may hide plants is refused, and nothing is hidden later", async () => {
    const secure = (how: "ENABLE" | "DISABLE") =>
      database.query(`ALTER TABLE plants ${how} ROW LEVEL SECURITY`);
    await (await open()).close();
    await grant("SELECT, INSERT, UPDATE, DELETE");
    await database.query(`CREATE POLICY visible ON plants TO ${role} USING (id <> 1)`);
    const storage = await open(roleUrl);
    const list = () => storage.list("home", undefined, 10);
    await storage.apply([create(), create()]);
    await secure("ENABLE");
    expect(await refusal(roleUrl)).toEndWith("the role lacks rights: BYPASSRLS on plants.");
    const works = [list, () => storage.apply([remove(1n)]), () => storage.apply([create()])];
    for (const work of works) {
      expect(await work().catch(({ code }) => code)).toBe("unavailable");
    }
    await secure("DISABLE");
    expect(await waitFor(() => list().catch(() => undefined))).toHaveLength(2);
    await storage.close();
  });
});
