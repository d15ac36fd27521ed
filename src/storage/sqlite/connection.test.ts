/** The settings that durability and exactness rest on. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeEmptyFile, makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { connect, readPragma, useWriteAheadLog } from "./connection.ts";

test.each([
  ["synchronous", 2n],
  ["fullfsync", 1n],
  ["foreign_keys", 1n],
  ["busy_timeout", 5_000n],
])("every connection has %s set to %p", (pragma, value) => {
  using folder = makeTemporaryFolder();
  const database = connect(makeEmptyFile(folder.path));
  expect(readPragma(database, pragma)).toBe(value);
  database.close();
});

test("integers beyond 2^53 come back exactly", () => {
  using folder = makeTemporaryFolder();
  const database = connect(makeEmptyFile(folder.path));
  const row = database.query<{ id: bigint }, [bigint]>("SELECT ? AS id").get(2n ** 53n + 1n);
  expect(row?.id).toBe(2n ** 53n + 1n);
  database.close();
});

test("a file that SQLite keeps no write-ahead log of is refused", () => {
  // Whose mode it leaves as it is, without a word, as that of a file where memory is not shared.
  using database = new Database(":memory:");
  expect(() => useWriteAheadLog(database)).toThrow("no write-ahead log can be kept");
});

test("a process that writes to a file without a log yet is waited for", async () => {
  using folder = makeTemporaryFolder();
  const path = makeEmptyFile(folder.path);
  const script = `
    const { connect } = await import(${JSON.stringify(join(import.meta.dir, "connection.ts"))});
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
