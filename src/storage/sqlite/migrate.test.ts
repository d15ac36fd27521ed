/** Migrations on real files: each once, all or nothing, and no hand on files that are not ours. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { keptPath } from "../../../test/upgrades/kept-data.ts";
import { assignedIdMax } from "../../domain/plant.ts";
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

/** A copy of what 0.5 left, with its log. */
function openFive(): void {
  for (const name of ["plants.db", "plants.db-wal"] as const) {
    copyFileSync(keptPath("0.5.0", name), join(folder.path, name));
  }
  open();
}

describe("migrate", () => {
  test("brings a file of 0.5 to exactly the same schema, counts, and reports it", () => {
    openFive();
    requireExactSchema(database);
    const reports: string[] = [];
    migrate(database, (work) => reports.push(work));
    expect(reports).toEqual(["from schema 3 to 4; this may take minutes"]);
    requireExactSchema(database);
    expect(database.query("SELECT * FROM gardens").all()).toEqual([
      { garden: "ada", last_id: 9n, plants: 6n, keys: 1n },
    ]);
  });

  test("counts gardens that have no row or only an id above 2^52, and ends their ids there", () => {
    openFive();
    database.run(`INSERT INTO gardens VALUES ('high', ${assignedIdMax + 5n});
      INSERT INTO plants VALUES ('high', ${assignedIdMax + 5n}, 'Fern', ''), ('low', -1, 'Ivy', '')`);
    migrate(database);
    const counts = "SELECT garden, last_id, plants, keys FROM gardens WHERE garden <> 'ada'";
    expect(database.query(counts).all()).toEqual([
      { garden: "high", last_id: assignedIdMax, plants: 1n, keys: 0n },
      { garden: "low", last_id: 0n, plants: 1n, keys: 0n },
    ]);
  });

  test("leaves everything as it was when it fails halfway", () => {
    openFive();
    database.run("DROP TABLE idempotency_hashes");
    const before = tables();
    expect(() => migrate(database)).toThrow("idempotency_hashes");
    expect(database.inTransaction).toBe(false);
    expect(tables()).toEqual(before);
    expect(readPragma(database, "user_version")).toBe(3n);
  });
});

describe("the check of a file", () => {
  test.each([
    [2, "its schema is 2, of a version before 0.5: upgrade to 0.5 first"],
    [5, "its schema is 5, and this version knows schemas up to 4: use a newer version"],
  ])("refuses the schema %i", (schema, reason) => {
    open();
    migrate(database);
    database.run(`PRAGMA user_version = ${schema}`);
    expect(() => checkFile(database)).toThrow(reason);
  });

  test("refuses a schema of 0.5 that 0.5 did not make", () => {
    openFive();
    database.run("CREATE TRIGGER t AFTER INSERT ON plants BEGIN DELETE FROM tokens; END");
    expect(() => requireExactSchema(database)).toThrow("not the one that 0.5 creates");
  });
});
