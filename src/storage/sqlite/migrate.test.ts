/** Migrations on real files: each once, all or nothing, and no hand on files that are not ours. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { keptPath } from "../../../test/upgrades/kept-data.ts";
import { checkFile, migrate, requireExactSchema } from "./migrate.ts";
import { connect, readPragma } from "./open.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let database: Database;

beforeEach(() => {
  folder = makeTemporaryFolder();
});

afterEach(() => {
  database.close();
  folder[Symbol.dispose]();
});

function open(): void {
  database = connect(touch(join(folder.path, "plants.db")));
}

function tables(): string[] {
  const rows = database.query<{ name: string }, []>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
  );
  return rows.all().map((row) => row.name);
}

/** A copy of what 1.0 left, with its log. */
function openOne(): void {
  for (const name of ["plants.db", "plants.db-wal"] as const) {
    copyFileSync(keptPath("1.0.0", name), join(folder.path, name));
  }
  open();
}

describe("migrate", () => {
  test("brings a file of 1.0 to exactly the schema of a new one, and reports it", () => {
    openOne();
    requireExactSchema(database);
    const reports: string[] = [];
    migrate(database, (work) => reports.push(work));
    expect(reports).toEqual(["from schema 4 to 5; this may take minutes"]);
    requireExactSchema(database);
  });

  test("does nothing if another process has migrated the file just before", () => {
    openOne();
    using other = connect(join(folder.path, "plants.db"));
    const begin = database.transaction.bind(database);
    database.transaction = (work) => {
      migrate(other);
      return begin(work);
    };
    const reports: string[] = [];
    migrate(database, (work) => reports.push(work));
    expect(reports).toEqual([]);
    requireExactSchema(database);
  });

  test("leaves everything as it was when it fails halfway", () => {
    openOne();
    database.run("DROP INDEX idempotency_keys_of_05");
    const before = tables();
    expect(() => migrate(database)).toThrow("idempotency_keys_of_05");
    expect(database.inTransaction).toBe(false);
    expect(tables()).toEqual(before);
    expect(readPragma(database, "user_version")).toBe(4n);
  });
});

describe("the check of a file", () => {
  test.each([
    [3, "its schema is 3, of a version before 1.0: upgrade to 1.0 first"],
    [6, "its schema is 6, and this version knows schemas up to 5: use a newer version"],
  ])("refuses the schema %i", (schema, reason) => {
    open();
    migrate(database);
    database.run(`PRAGMA user_version = ${schema}`);
    expect(() => checkFile(database)).toThrow(reason);
  });

  test("refuses a schema of 1.0 that 1.0 did not make", () => {
    openOne();
    database.run("CREATE TRIGGER t AFTER INSERT ON plants BEGIN DELETE FROM tokens; END");
    expect(() => requireExactSchema(database)).toThrow("not the one that 1.0 creates");
  });
});
