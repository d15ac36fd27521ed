/** Databases as a service finds them: settings, poolers, other programs' tables, encodings. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Client } from "pg";
import {
  makeDatabase,
  serverPassword,
  type TestDatabase,
} from "../../../testing/postgres-server.ts";
import { skipsWithoutPooler, startPooler } from "../../../testing/transaction-pooler.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { clientConfig } from "./connect.ts";
import { openPostgres } from "./engine.ts";
import { parseUrl } from "./url.ts";

setDefaultTimeout(120_000);

/** Connecting takes a busy machine a while. */
const limits = { ...defaultConnectionLimits, connectTimeoutMs: 20_000 };

function open(url: string): Promise<Storage> {
  return openPostgres(url, { isServing: true, limits });
}

/** Fails if the database can be opened, or if the message shows the password or has a line break. */
async function messageOfRefusal(url: string): Promise<string> {
  const { message } = await open(url).catch((error) => error);
  expect(message).toMatch(/^Cannot open .+$/);
  expect(message).not.toContain(serverPassword);
  return message;
}

/** For every new connection to the database, unless the connection asks for another value. */
function setDefault(database: TestDatabase, name: string, value: string | number) {
  return database.query(`ALTER DATABASE ${database.name} SET ${name} = ${value}`);
}

describe("where the defaults are weaker than our promises need,", () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await makeDatabase();
    await setDefault(database, "synchronous_commit", "off");
    await setDefault(database, "client_min_messages", "error");
    await setDefault(database, "idle_in_transaction_session_timeout", 0);
  });
  afterAll(() => database.drop());

  test.each([
    { name: "synchronous_commit", value: "on" },
    { name: "client_min_messages", value: "warning" },
    // So that the server releases the gardens of an instance that vanished in a transaction.
    { name: "idle_in_transaction_session_timeout", value: "10s" },
    { name: "row_security", value: "off" },
  ])("a connection sets $name to $value", async ({ name, value }) => {
    const mode = { isEncrypted: false, takesOptions: true, schema: undefined };
    const client = new Client(clientConfig(parseUrl(database.url), limits, mode));
    await client.connect();
    const { rows } = await client.query(`SHOW ${name}`);
    await client.end();
    expect(rows).toEqual([{ [name]: value }]);
  });

  test("a service starts", async () => {
    const storage = await open(database.url);
    await storage.close();
  });
});

test.skipIf(skipsWithoutPooler()).each([
  ["synchronous_commit", "off"],
  ["client_min_messages", "error"],
])("behind a pooler, no service starts where %s is %s", async (name, value) => {
  await using database = await makeDatabase();
  await setDefault(database, name, value);
  const pooler = await startPooler(database.url);
  const message = await messageOfRefusal(pooler.url);
  await pooler.stop();
  expect(message).toContain(`its ${name} is ${value}, so confirmed writes could`);
});

describe("a database with another program's tables", () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await makeDatabase();
    await database.query("CREATE TABLE plants (song text)");
  });
  afterAll(() => database.drop());

  test("is refused", async () => {
    const message = await messageOfRefusal(database.url);
    expect(message).toEndWith("it holds tables of another program.");
  });

  test("gets no tables of ours", async () => {
    await messageOfRefusal(database.url);
    const tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
    expect(await database.query(tables)).toEqual([{ tablename: "plants" }]);
  });
});

test("a database whose encoding can't hold all text is refused", async () => {
  await using database = await makeDatabase();
  const name = `${database.name}_latin`;
  await database.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
  const message = await messageOfRefusal(database.url.replace(database.name, name));
  await database.query(`DROP DATABASE ${name}`);
  expect(message).toEndWith("its encoding is LATIN1, and UTF8 is needed.");
});
