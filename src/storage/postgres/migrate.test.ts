/** Migrations on real databases: each once, all or nothing, and no hand on what is not ours. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Client } from "pg";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../../../test/postgres-server.ts";
import { keptPath } from "../../../test/upgrades/kept-data.ts";
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

/** None of the steps needs a second connection. */
const withConnection = () => Promise.reject(new Error("There is no second connection."));

function migrateBy(steps: readonly string[], by = client): Promise<void> {
  return migrate(by, { steps, withConnection });
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
  test("applies each step once, in this or in a later run", async () => {
    await migrateBy([first]);
    await migrateBy([first]);
    await migrateBy([first, second]);
    await migrateBy([first, second]);
    expect(await database.query("SELECT x FROM a")).toEqual([{ x: "2" }]);
    expect(await tables()).toEqual(["a", "b", "plantstore_schema"]);
  });

  test("leaves everything as it was when a step fails halfway, and can be done over", async () => {
    await migrateBy([first]);
    const failure = await migrateBy([first, second, broken]).catch((error) => error);
    expect(failure.code).toBe("42P01");
    expect(await tables()).toEqual(["a", "plantstore_schema"]);
    await migrateBy([first, second]);
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
      await Promise.all(clients.map((each) => migrateBy(steps, each)));
    }
    await Promise.all(clients.map((each) => each.end()));
    expect(await database.query("SELECT x FROM a")).toEqual([{ x: "2" }]);
  });
});

describe("the index of tags", () => {
  const addPlant = (id: number) =>
    database.query("INSERT INTO plants VALUES ('home', $1, 'Fern', 'a')", [id]);
  const open = (onMigration?: (work: string) => void) =>
    openPostgres(database.url, { isServing: true, onMigration });

  async function expectIndex(): Promise<void> {
    const indexes = await database.query(
      "SELECT indisvalid FROM pg_index WHERE indexrelid = 'plants_by_tag'::regclass",
    );
    expect(indexes).toEqual([{ indisvalid: true }]);
    expect(await database.query("SELECT version FROM plantstore_schema")).toEqual([
      { version: "5" },
    ]);
  }

  beforeEach(async () => {
    await database.query(await Bun.file(keptPath("0.4.0", "postgres.sql")).text());
  });

  test("is made while others write, which is reported", async () => {
    await client.query("BEGIN; INSERT INTO plants VALUES ('home', 1, 'Fern', 'a')");
    const reported = Promise.withResolvers<string>();
    const opening = open(reported.resolve);
    // It waits for those who have begun, and nobody waits for it.
    expect(await reported.promise).toContain("making the index plants_by_tag");
    await waitForIndex("plants_by_tag");
    await addPlant(2);
    await client.query("COMMIT");
    const storage = await opening;
    expect(await storage.list("home", undefined, 9, { tag: "a" })).toHaveLength(2);
    await storage.close();
    await expectIndex();
  });

  test("is made once by five that start at the same time", async () => {
    const reports: string[] = [];
    const opened = await Promise.all(
      Array.from({ length: 5 }, () => open((work) => reports.push(work))),
    );
    await Promise.all(opened.map((storage) => storage.close()));
    expect(reports).toHaveLength(1);
    await expectIndex();
  });

  test("is made again where an attempt has failed", async () => {
    await client.query("INSERT INTO plants VALUES ('two', 1, '', ''), ('two', 2, '', '')");
    const failing = "CREATE UNIQUE INDEX CONCURRENTLY plants_by_tag ON plants (garden, tag)";
    await expect(client.query(failing)).rejects.toThrow("could not create unique index");
    await (await open()).close();
    await expectIndex();
  });

  test("is left to an attempt whose process has ended, but that is still at work", async () => {
    await client.query("BEGIN; INSERT INTO plants VALUES ('home', 1, 'Fern', 'a')");
    const left = database.query(
      'CREATE INDEX CONCURRENTLY plants_by_tag ON plants (garden, tag COLLATE "C", id)',
    );
    await waitForIndex("plants_by_tag");
    const reported = Promise.withResolvers<string>();
    const opening = open(reported.resolve);
    await reported.promise;
    await client.query("COMMIT");
    await left;
    await (await opening).close();
    await expectIndex();
  });

  /** It is there, but not whole. */
  function waitForIndex(name: string): Promise<unknown> {
    return waitFor(async () => {
      const found = await database.query("SELECT FROM pg_class WHERE relname = $1", [name]);
      return found.length > 0 || undefined;
    });
  }
});

describe("a database that cannot be used is refused in one line and stays untouched, when", () => {
  test("it is of a newer version", async () => {
    await migrateBy([first, second]);
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
