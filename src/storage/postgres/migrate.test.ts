/** Migrations on real databases: each once, all or nothing, and no hand on what is not ours. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { openPostgres } from "./engine.ts";
import { migrate } from "./migrate.ts";

const first = "CREATE TABLE a (x bigint); INSERT INTO a VALUES (1);";
const second = "CREATE TABLE b (y bigint); UPDATE a SET x = x + 1;";
const broken = "CREATE TABLE c (z bigint); INSERT INTO missing VALUES (1);";

let database: TestDatabase;
let client: Client;

beforeEach(async () => {
  database = await makeDatabase();
  client = new Client(database.url);
  await client.connect();
});

afterEach(async () => {
  await client.end();
  await database.drop();
});

async function tables(): Promise<unknown[]> {
  const rows = await database.query(
    "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename",
  );
  return rows.map(({ tablename }) => tablename);
}

/** Why it cannot be opened. */
async function refusal(): Promise<string> {
  const failure = await openPostgres(database.url, { isServing: true }).catch((error) => error);
  return failure.message;
}

describe("migrate", () => {
  test("applies each step once, in this or in a later run", async () => {
    await migrate(client, [first]);
    await migrate(client, [first]);
    await migrate(client, [first, second]);
    await migrate(client, [first, second]);
    expect(await database.query("SELECT x FROM a")).toEqual([{ x: "2" }]);
    expect(await tables()).toEqual(["a", "b", "plantstore_schema"]);
  });

  test("leaves everything as it was when a step fails halfway, and can be done over", async () => {
    await migrate(client, [first]);
    const failure = await migrate(client, [first, second, broken]).catch((error) => error);
    expect(failure.code).toBe("42P01");
    expect(await tables()).toEqual(["a", "plantstore_schema"]);
    await migrate(client, [first, second]);
    expect(await database.query("SELECT x FROM a")).toEqual([{ x: "2" }]);
  });

  test("is done once by ten that start at the same time", async () => {
    const clients = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const each = new Client(database.url);
        await each.connect();
        return each;
      }),
    );
    // The first statement of a connection is slow, and would set them apart.
    await Promise.all(clients.map((each) => each.query("SELECT 1")));
    for (const steps of [[first], [first, second]]) {
      await Promise.all(clients.map((each) => migrate(each, steps)));
    }
    await Promise.all(clients.map((each) => each.end()));
    expect(await database.query("SELECT x FROM a")).toEqual([{ x: "2" }]);
  });
});

describe("a database that cannot be used is refused in one line and stays untouched, when", () => {
  test("it is of a newer version", async () => {
    await migrate(client, [first, second]);
    await database.query("UPDATE plantstore_schema SET version = 99");
    expect(await refusal()).toMatch(
      /^Cannot open postgres:\S+: its schema is 99, .*newer version\.$/,
    );
    expect(await tables()).toEqual(["a", "b", "plantstore_schema"]);
  });

  test("it holds tables of another program", async () => {
    await client.query("CREATE TABLE plants (song text)");
    expect(await refusal()).toEndWith("it holds tables of another program.");
    expect(await tables()).toEqual(["plants"]);
  });

  test("another schema comes first now, whose tables would hide those of the store", async () => {
    await (await openPostgres(database.url, { isServing: true })).close();
    const before = await tables();
    await client.query("CREATE SCHEMA newer");
    const setPath = (path: string) =>
      client.query(`ALTER DATABASE ${database.name} SET search_path = ${path}`);
    await setPath("newer, public");
    expect(await refusal()).toContain(
      'its store is in the schema "public", which is not the first',
    );
    expect(await database.query("SELECT FROM pg_tables WHERE schemaname = 'newer'")).toEqual([]);
    expect(await tables()).toEqual(before);
    await setPath("newer");
    await (await openPostgres(database.url, { isServing: true })).close();
    await setPath("newer, public");
    await (await openPostgres(database.url, { isServing: true })).close();
  });

  test("it must be there and is empty", async () => {
    const options = { isServing: false, mustExist: true };
    const failure = await openPostgres(database.url, options).catch((error) => error);
    expect(failure.message).toEndWith("it holds no plant store yet.");
    expect(await tables()).toEqual([]);
  });

  test("its encoding cannot hold all text", async () => {
    const name = `${database.name}_latin`;
    await client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
    const url = database.url.replace(database.name, name);
    const failure = await openPostgres(url, { isServing: true }).catch((error) => error);
    await client.query(`DROP DATABASE ${name}`);
    expect(failure.message).toEndWith("its encoding is LATIN1, and UTF8 is needed.");
  });
});

test("where a new store was made is told, once", async () => {
  await client.query("CREATE SCHEMA gardens");
  await client.query(`ALTER DATABASE ${database.name} SET search_path = nowhere, gardens, public`);
  const told: string[] = [];
  const options = { isServing: false, onNewSchema: (name: string) => told.push(name) };
  for (const _ of ["made", "found"]) await (await openPostgres(database.url, options)).close();
  expect(told).toEqual(["gardens"]);
});
