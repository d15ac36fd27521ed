/** Schemas of real databases: created once, and no hand on what is not ours. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { openPostgres } from "./engine.ts";

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

describe("a database that cannot be used is refused in one line and stays untouched, when", () => {
  test("it holds tables of another program", async () => {
    await client.query("CREATE TABLE plants (song text)");
    expect(await refusal()).toEndWith("it holds tables of another program.");
    expect(await tables()).toEqual(["plants"]);
  });

  test("another schema comes first now, whose tables would hide the store", async () => {
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

  test("its encoding cannot hold all text", async () => {
    const name = `${database.name}_latin`;
    await client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
    const url = database.url.replace(database.name, name);
    const failure = await openPostgres(url, { isServing: true }).catch((error) => error);
    await client.query(`DROP DATABASE ${name}`);
    expect(failure.message).toEndWith("its encoding is LATIN1, and UTF8 is needed.");
  });
});
