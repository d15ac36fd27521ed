/** Finding, connecting to and locking the file of a store. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { makeEmptyFile, makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { openSqlite } from "./engine.ts";
import { connect, lockForServing, readPragma, useWriteAheadLog } from "./open.ts";

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

test("integers beyond 2^53 come back exactly", () => {
  using folder = makeTemporaryFolder();
  const database = connect(makeEmptyFile(folder.path));
  const row = database.query<{ id: bigint }, [bigint]>("SELECT ? AS id").get(2n ** 53n + 1n);
  expect(row?.id).toBe(2n ** 53n + 1n);
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

test("no store is made beside the log of one that is gone, also through a link", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const link = join(folder.path, "link.db");
  symlinkSync(path, link);
  const store = openSqlite(path, { isServing: true });
  renameSync(path, join(folder.path, "moved.db"));
  const size = statSync(`${path}-wal`).size;
  for (const address of [link, path]) {
    const opening = () => openSqlite(address, { isServing: false });
    expect(opening).toThrow("its log plants.db-wal may hold plants");
  }
  expect(statSync(`${path}-wal`).size).toBe(size);
  await store.close();
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

describe("the lock for serving", () => {
  let folder: ReturnType<typeof makeTemporaryFolder>;
  let path: string;
  let locks: Database[];

  beforeEach(() => {
    folder = makeTemporaryFolder();
    path = join(folder.path, "plants.db");
    locks = [];
  });

  afterEach(() => {
    for (const lock of locks) lock.close();
    folder[Symbol.dispose]();
  });

  function lock(file = path): void {
    locks.push(lockForServing(file));
  }

  // Whoever owns the folder could have root open, and give them, any file of the system.
  test("is not taken through a link", () => {
    const elsewhere = join(folder.path, "elsewhere");
    symlinkSync(elsewhere, `${path}-serving`);
    expect(() => openSqlite(path, { isServing: true })).toThrow("are not followed");
    expect(existsSync(elsewhere)).toBe(false);
  });

  test("of another process is seen, and is gone when that process is killed", async () => {
    const script = `
    const { lockForServing } = await import(${JSON.stringify(join(import.meta.dir, "open.ts"))});
    const lock = lockForServing(${JSON.stringify(path)});
    process.stdout.write("locked");
    setInterval(() => lock, 1000);
  `;
    const other = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
    const reader = other.stdout.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain("locked");
    expect(() => lock()).toThrow("another process is serving it already");
    other.kill("SIGKILL");
    await other.exited;
    expect(() => lock()).not.toThrow();
  });
});
