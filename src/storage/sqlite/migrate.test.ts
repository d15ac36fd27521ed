/** Migrations on real files: each once, all or nothing, and no hand on files that are not ours. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { touch } from "../../../test/temporary-folder.ts";
import { openSqlite } from "./engine.ts";
import { checkFile, migrate } from "./migrate.ts";
import { applicationId, connect, readPragma } from "./open.ts";

const first = "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);";
const second = "CREATE TABLE b (y INTEGER) STRICT; UPDATE a SET x = x + 1;";
const broken = "CREATE TABLE c (z INTEGER) STRICT; INSERT INTO missing VALUES (1);";

let folder: string;
let path: string;
let opened: Database[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-migrate-"));
  path = join(folder, "plants.db");
  opened = [];
});

afterEach(() => {
  for (const database of opened) database.close();
  rmSync(folder, { recursive: true });
});

function open(): Database {
  const database = connect(touch(path));
  opened.push(database);
  return database;
}

function tables(database: Database): string[] {
  const rows = database.query<{ name: string }, []>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
  );
  return rows.all().map((row) => row.name);
}

function counterOf(database: Database): bigint | undefined {
  return database.query<{ x: bigint }, []>("SELECT x FROM a").get()?.x;
}

describe("migrate", () => {
  test("brings an empty file to the newest schema and marks it as ours", () => {
    const database = open();
    migrate(database, [first, second]);
    expect(tables(database)).toEqual(["a", "b"]);
    expect(readPragma(database, "user_version")).toBe(2n);
    expect(readPragma(database, "application_id")).toBe(BigInt(applicationId));
  });

  test("applies each step once, in this or in a later run", () => {
    migrate(open(), [first]);
    migrate(open(), [first]);
    migrate(open(), [first, second]);
    migrate(open(), [first, second]);
    expect(counterOf(open())).toBe(2n);
  });

  test("leaves everything as it was when a step fails halfway, and can be done again", () => {
    migrate(open(), [first]);
    const database = open();
    expect(() => migrate(database, [first, second, broken])).toThrow("missing");
    expect(database.inTransaction).toBe(false);
    expect(tables(database)).toEqual(["a"]);
    expect(counterOf(database)).toBe(1n);
    expect(readPragma(database, "user_version")).toBe(1n);
    migrate(database, [first, second]);
    expect(tables(database)).toEqual(["a", "b"]);
  });

  test("is reported if there is something to migrate", () => {
    const reports: string[] = [];
    const report = (work: string) => reports.push(work);
    for (const steps of [[first], [first, second], [first, second]]) {
      migrate(open(), steps, report);
    }
    expect(reports).toEqual(["from schema 1 to 2; this may take minutes"]);
  });

  test("makes the tables that the service needs", () => {
    const database = open();
    migrate(database);
    expect(tables(database)).toEqual([
      "gardens",
      "idempotency_hashes",
      "idempotency_keys",
      "plants",
      "token_changes",
      "tokens",
    ]);
  });
});

describe("the check of a file", () => {
  test("passes a new file, and one of ours", () => {
    checkFile(open());
    migrate(open());
    checkFile(open());
  });

  test.each([
    [1, 1, true],
    [1, 2, true],
    [2, 1, false],
  ])("with schema %i in the file and %i known passes: %p", (kept, known, passes) => {
    migrate(open(), [first, second].slice(0, kept));
    const check = () => checkFile(open(), known);
    if (passes) expect(check).not.toThrow();
    else expect(check).toThrow("use a newer version");
  });
});

/** The bytes of every file in the folder but the lock, which is ours alone. */
function contents(): Record<string, string> {
  const names = readdirSync(folder).filter((name) => !name.endsWith("-serving"));
  return Object.fromEntries(
    names.sort().map((name) => [name, readFileSync(join(folder, name)).toString("hex")]),
  );
}

test.each(["application_id = 99", "user_version = 7"])(
  "a file without tables, but with the mark %s of another program, is refused and untouched",
  (pragma) => {
    const database = new Database(path);
    database.run(`PRAGMA ${pragma}`);
    database.close();
    const before = contents();
    expect(() => openSqlite(path, { isServing: true })).toThrow(`Cannot open ${path}: it`);
    expect(contents()).toEqual(before);
  },
);
