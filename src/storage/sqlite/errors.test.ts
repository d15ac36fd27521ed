/** What SQLite really throws, and which error of the domain that becomes. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import type { PlantStoreError } from "../../domain/errors.ts";
import { mapCommitError, mapError } from "./errors.ts";

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("Nothing was thrown.");
}

const isFull = "PRAGMA max_page_count = 3";
const isReadOnly = "PRAGMA query_only = ON";

function failToInsert(path: string, pragma: string): unknown {
  using database = new Database(path);
  database.run("CREATE TABLE plants (name TEXT NOT NULL UNIQUE)");
  database.run(pragma);
  return thrownBy(() => database.run("INSERT INTO plants VALUES (?)", ["x".repeat(100_000)]));
}

test.each([
  ["full", "storage-full", isFull],
  ["read-only", "unavailable", isReadOnly],
])("a %s storage is %s, without a word of the file or the query", (_, code, pragma) => {
  using folder = makeTemporaryFolder();
  const thrown = failToInsert(join(folder.path, "plants.db"), pragma);
  const shown = mapError(thrown) as PlantStoreError;
  expect(shown).toMatchObject({ code, cause: thrown });
  expect(shown.message).not.toContain("SQL");
  expect(shown.message).not.toContain(folder.path);
});

test("of a commit that failed the outcome is unknown, unless there was no room for it", () => {
  using folder = makeTemporaryFolder();
  const text = join(folder.path, "text");
  writeFileSync(text, "text ".repeat(1000));
  const failed = thrownBy(() => new Database(text).query("SELECT 1 FROM plants"));
  expect(mapCommitError(failed)).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("outcome is unknown"),
    cause: failed,
  });
  const full = failToInsert(join(folder.path, "plants.db"), isFull);
  expect(mapCommitError(full)).toMatchObject({ code: "storage-full" });
  const bug = new TypeError("x");
  expect(mapCommitError(bug)).toBe(bug);
});
