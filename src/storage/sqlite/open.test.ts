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

test("a process that writes to a file without a log yet is waited for", async () => {
  using folder = makeTemporaryFolder();
  const path = makeEmptyFile(folder.path);
  const script = `
    const { connect } = await import(${JSON.stringify(join(import.meta.dir, "open.ts"))});
    const database = connect(${JSON.stringify(path)});
    database.run("BEGIN IMMEDIATE");
    process.stdout.write("begun");
    setTimeout(() => database.run("COMMIT"), 300);
  `;
  const other = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  await other.stdout.getReader().read();
  using database = connect(path);
  useWriteAheadLog(database);
  expect(database.query("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
  await other.exited;
});

test("a file that cannot be read is not reported as missing", () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  symlinkSync(path, path);
  const opening = () => openSqlite(path, { isServing: false, mustExist: true });
  expect(opening).toThrow("in a circle");
});

test("a link to a missing folder, such as a disk that is not mounted, is reported", () => {
  using folder = makeTemporaryFolder();
  const link = join(folder.path, "data");
  symlinkSync(join(folder.path, "disk"), link);
  const opening = () => openSqlite(join(link, "plants.db"), { isServing: false });
  expect(opening).toThrow("a link that leads nowhere");
});
