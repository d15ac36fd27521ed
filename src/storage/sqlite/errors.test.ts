/** What SQLite really throws, and which error of the domain that becomes. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PlantStoreError } from "../../domain/errors.ts";
import { mapCommitError, mapError } from "./errors.ts";

let folder: string;
let path: string;
let database: Database;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-errors-"));
  path = join(folder, "plants.db");
  database = new Database(path);
  database.run("CREATE TABLE plants (name TEXT NOT NULL UNIQUE)");
});

afterEach(() => {
  database.close();
  rmSync(folder, { recursive: true });
});

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("Nothing was thrown.");
}

const insert = () => database.run("INSERT INTO plants VALUES (?)", ["x".repeat(100_000)]);

test("a full storage is storage-full, without a word of the file or the query", () => {
  database.run("PRAGMA max_page_count = 3");
  const thrown = thrownBy(insert);
  const shown = mapError(thrown) as PlantStoreError;
  expect(shown).toMatchObject({ code: "storage-full", cause: thrown });
  expect(shown.message).not.toContain("SQL");
  expect(shown.message).not.toContain(path);
});

test("a read-only storage is unavailable, and says that reading works", () => {
  database.run("PRAGMA query_only = ON");
  const shown = mapError(thrownBy(insert));
  expect(shown).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("Reading still works"),
  });
});

test.each([
  ["another error", new Error("SQLITE_FULL")],
  ["an expected failure", new PlantStoreError("conflict", "x")],
  ["an error with a code of the same name", Object.assign(new Error("x"), { code: "SQLITE_FULL" })],
  ["nothing", undefined],
])("%s stays as it is", (_case, thrown) => {
  expect(mapError(thrown)).toBe(thrown);
});

test("of a commit that failed the outcome is unknown, unless there was no room for it", () => {
  const text = join(folder, "text");
  writeFileSync(text, "text ".repeat(1000));
  const failed = thrownBy(() => new Database(text).query("SELECT 1 FROM plants"));
  expect(mapCommitError(failed)).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("outcome is unknown"),
    cause: failed,
  });
  database.run("PRAGMA max_page_count = 3");
  expect(mapCommitError(thrownBy(insert))).toMatchObject({ code: "storage-full" });
  const bug = new TypeError("x");
  expect(mapCommitError(bug)).toBe(bug);
});
