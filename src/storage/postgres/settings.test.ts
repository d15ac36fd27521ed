/** Databases as a service meets them: settings, poolers, other tables, encodings. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
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

let database: TestDatabase;
let url: string;

beforeEach(async () => {
  database = await makeDatabase();
  url = database.url;
});
afterEach(() => database.drop());

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
  await set("synchronous_commit = off");
  await set("client_min_messages = error");
  // So that the server lets go of gardens whose instance has vanished within a transaction.
  await set("idle_in_transaction_session_timeout = 0");
  const mode = { isEncrypted: false, takesOptions: true, schema: undefined };
  const client = new Client(clientConfig(parseUrl(url), limits, mode));
  await client.connect();
  const show = async (name: string) => (await client.query(`SHOW ${name}`)).rows[0][name];
  expect(await show("synchronous_commit")).toBe("on");
  expect(await show("client_min_messages")).toBe("warning");
  expect(await show("idle_in_transaction_session_timeout")).toBe("10s");
  expect(await show("row_security")).toBe("off");
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

test("a database with tables of another program is refused, and stays untouched", async () => {
  await database.query("CREATE TABLE plants (song text)");
  expect(await refusal()).toEndWith("it holds tables of another program.");
  const tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
  expect(await database.query(tables)).toEqual([{ tablename: "plants" }]);
});

test("a database whose encoding cannot hold all text is refused", async () => {
  const name = `${database.name}_latin`;
  await database.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
  const reason = await refusal(url.replace(database.name, name));
  await database.query(`DROP DATABASE ${name}`);
  expect(reason).toEndWith("its encoding is LATIN1, and UTF8 is needed.");
});
