/** Migrations on real databases: each once, all or nothing, and no hand on what is not ours. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { keptPath } from "../../../test/upgrades/kept-data.ts";
import { openPostgres } from "./engine.ts";
import { migrate } from "./migrate.ts";

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

/** What 1.0 left. */
async function bringOne(): Promise<void> {
  await database.query(await Bun.file(keptPath("1.0.0", "postgres.sql")).text());
}

const ourTables = [
  "events",
  "gardens",
  "idempotency_keys",
  "plants",
  "plantstore_schema",
  "token_changes",
  "tokens",
];

/** Every column, index and constraint, but of the table that holds its version. */
async function describeSchema(): Promise<unknown[]> {
  return database.query(`
    SELECT what FROM (SELECT format('%s.%s %s %s', table_name, column_name, data_type, column_default) AS what
      FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
      WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
    ) AS parts WHERE what NOT LIKE '%plantstore_schema%' ORDER BY 1`);
}

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
  test("makes the same schema from nothing and from 1.0's, and reports only that", async () => {
    const reports: string[] = [];
    const migrateTwice = async () => {
      for (const _ of ["migrated", "found"]) await migrate(client, (work) => reports.push(work));
    };
    await migrateTwice();
    const fresh = await describeSchema();
    expect(await tables()).toEqual(ourTables);
    expect(reports).toEqual([]);
    await client.query(`DROP TABLE ${ourTables}`);
    await bringOne();
    await migrateTwice();
    expect(reports).toEqual(["from schema 6 to 7; this may take minutes"]);
    expect(await describeSchema()).toEqual(fresh);
  });

  test("leaves everything as it was when it fails halfway", async () => {
    await bringOne();
    await client.query("DROP INDEX idempotency_keys_of_05");
    const before = await describeSchema();
    expect((await migrate(client).catch((error) => error)).code).toBe("42704");
    expect(await describeSchema()).toEqual(before);
  });
});

describe("a database that cannot be used is refused in one line and stays untouched, when", () => {
  test.each([
    [99, /^Cannot open postgres:\S+: its schema is 99, .*newer version\.$/],
    [5, /^Cannot open postgres:\S+: its schema is 5, .* before 1\.0: upgrade to 1\.0 first/],
  ])("its schema is %i", async (version, reason) => {
    await migrate(client);
    await database.query(`UPDATE plantstore_schema SET version = ${version}`);
    expect(await refusal()).toMatch(reason);
    expect(await tables()).toEqual(ourTables);
  });

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
