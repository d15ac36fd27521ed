/** Finding, connecting to and locking the file of a store. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { makeEmptyFile, makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { openSqlite } from "./engine.ts";
import { connect, readPragma, useWriteAheadLog } from "./open.ts";

test.each([
  ["synchronous", 2n],
  ["fullfsync", 1n],
  ["foreign_keys", 1n],
  ["trusted_schema", 0n],
  ["busy_timeout", 5_000n],
])("every connection has %s set to %p", (pragma, value) => {
  using folder = makeTemporaryFolder();
  const database = connect(makeEmptyFile(folder.path));
  expect(readPragma(database, pragma)).toBe(value);
  database.close();
});

test("a file without support for a write-ahead log is refused", () => {
  // Whose mode it leaves as it is, without a word, as that of a file where memory is not shared.
  using database = new Database(":memory:");
  expect(() => useWriteAheadLog(database)).toThrow("does not support a write-ahead log");
});

test("a link to a missing folder, such as a disk that is not mounted, is reported", () => {
  using folder = makeTemporaryFolder();
  const link = join(folder.path, "data");
  symlinkSync(join(folder.path, "disk"), link);
  const opening = () => openSqlite(join(link, "plants.db"), { isServing: false });
  expect(opening).toThrow("a link that leads nowhere");
});
