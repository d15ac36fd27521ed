/** What a start refuses, and that it leaves what it refuses as it is. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "../../../test/storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { readDescription, seal } from "../sealed-file.ts";
import { openSqlite } from "./engine.ts";
import { inspectSqlite } from "./inspection.ts";
import { copySqlite } from "./snapshot.ts";

const serving = { isServing: true };

/** A file with a log beside it, as a killed process leaves them. */
async function makeKilledStore(folder: string): Promise<string> {
  const path = join(folder, "served.db");
  const storage = openSqlite(path, serving);
  const plants = Array.from({ length: 200 }, (_, index) => create({ name: `Fern ${index}` }));
  await storage.apply(plants);
  using beside = new Database(path);
  beside.run("PRAGMA wal_checkpoint(TRUNCATE)");
  await storage.apply([create()]);
  const left = join(folder, "plants.db");
  copyFileSync(path, left);
  copyFileSync(`${path}-wal`, `${left}-wal`);
  beside.close();
  await storage.close();
  return left;
}

function readBoth(path: string): string[] {
  return [path, `${path}-wal`].map((file) => readFileSync(file, "latin1"));
}

test.each([
  ["damaged", "it is damaged", damage],
  // Its number is in the header of the file, which the log does not hold.
  ["of a newer schema", "use a newer version", (path: string) => overwrite(path, 60, "\0\0\0\x09")],
  ["without a column", "no column named count", renameColumn],
  ["another program's", "of another program", (path: string) => overwrite(path, 68, "\0\0\0\0")],
  ["empty beside its log", "its log (-wal) is not", (path: string) => truncateSync(path)],
])("a file that is %s is refused, and stays as it is with its log", async (_, reason, spoil) => {
  using folder = makeTemporaryFolder();
  const path = await makeKilledStore(folder.path);
  spoil(path);
  const before = readBoth(path);
  expect(() => openSqlite(path, serving)).toThrow(reason);
  expect(readBoth(path)).toEqual(before);
});

test("a file without a column that has no log yet is refused, and given none", async () => {
  using folder = makeTemporaryFolder();
  const path = await makeStoreInOneFile(folder.path);
  renameColumn(path);
  const before = readFileSync(path);
  expect(() => openSqlite(path, serving)).toThrow("no column named count");
  expect(readFileSync(path).equals(before)).toBe(true);
});

test("a backup leaves the log of a file that was emptied, too", async () => {
  using folder = makeTemporaryFolder();
  const path = await makeKilledStore(folder.path);
  truncateSync(path);
  const before = readBoth(path);
  const copying = copySqlite(path, join(folder.path, "copy.db"), async () => {});
  const failure = await copying.catch((error) => error.message);
  expect(failure).toContain("its log (-wal) is not");
  expect(readBoth(path)).toEqual(before);
});

/** All but the first page, which says whose it is. */
function damage(path: string): void {
  overwrite(path, 4096, "\0".repeat(statSync(path).size - 4096));
}

/** Well-formed in itself, so that only who asks for the column finds out. */
function renameColumn(path: string): void {
  const bytes = readFileSync(path);
  overwrite(path, bytes.indexOf("count ", bytes.indexOf("TABLE token_changes")), "comut");
}

function overwrite(path: string, at: number, text: string): void {
  const bytes = readFileSync(path);
  bytes.write(text, at, "latin1");
  writeFileSync(path, bytes);
}

test("a damaged file that is not to be served is opened, so that tokens can be revoked", async () => {
  using folder = makeTemporaryFolder();
  const path = await makeKilledStore(folder.path);
  damage(path);
  await openSqlite(path, { isServing: false }).close();
});

test("a file that a killed process left, with its log, is served", async () => {
  using folder = makeTemporaryFolder();
  const storage = openSqlite(await makeKilledStore(folder.path), serving);
  expect((await storage.list("home", undefined, 1_000)).length).toBe(201);
  await storage.close();
});

/**
 * What the power may leave of a first start, when it is cut while the folder is synced: the file is
 * to have a log already, which is empty, and its journal is still there, which takes that back.
 */
function layCutFirstStart(folder: string): string {
  const path = join(folder, "plants.db");
  const database = new Database(path);
  database.run("PRAGMA journal_mode = WAL");
  database.close();
  const journal = Buffer.alloc(512);
  journal.write("d9d505f920a163d7", "hex");
  journal.writeUInt32BE(512, 20);
  journal.writeUInt32BE(4096, 24);
  writeFileSync(`${path}-journal`, journal);
  writeFileSync(`${path}-wal`, Buffer.from(logHeader, "hex"));
  return path;
}

const logHeader = "377f0682002de2180000100000000000d28a99f82e16916bcd808de5f0f97bb8";

test.each([
  ["with its journal", () => {}],
  [
    "with its journal, and cut again when that was taken back",
    (path: string) => truncateSync(path),
  ],
])("a first start that was cut off, %s, begins anew", async (_, spoil) => {
  using folder = makeTemporaryFolder();
  const path = layCutFirstStart(folder.path);
  spoil(path);
  const storage = openSqlite(path, serving);
  await storage.apply([create()]);
  expect((await storage.list("home", undefined, 1_000)).length).toBe(1);
  await storage.close();
});

test.each([true, false])(
  "a backup is no store, and stays as it is; served: %p",
  async (isServing) => {
    using folder = makeTemporaryFolder();
    const path = await makeBackup(folder.path);
    const before = readFileSync(path);
    expect(() => openSqlite(path, { isServing })).toThrow("it is a backup (plantstore restore");
    expect(readFileSync(path).equals(before)).toBe(true);
  },
);

test("no backup is made of a backup: it would be dated anew", async () => {
  using folder = makeTemporaryFolder();
  const path = await makeBackup(folder.path);
  const copying = copySqlite(path, join(folder.path, "copy.db"), async () => {});
  expect(await copying.catch((error) => error.message)).toContain("it is a backup");
});

test("a store that was a backup, and whose seal is broken, opens", async () => {
  using folder = makeTemporaryFolder();
  const path = await makeBackup(folder.path);
  using database = new Database(path);
  database.run("PRAGMA journal_mode = WAL");
  database.close();
  await openSqlite(path, serving).close();
});

test("a store whose last page ends like a backup opens", async () => {
  using folder = makeTemporaryFolder();
  const path = await makeStoreInOneFile(folder.path);
  const end = `${JSON.stringify({ kind: "plantstore backup 1", ...description })}\n`;
  overwrite(path, statSync(path).size - end.length - 65, `${end}${"0".repeat(64)}\n`);
  expect(readDescription(path)).toBeDefined();
  await openSqlite(path, { isServing: false }).close();
});

const description = { madeAt: "2026-07-01T12:00:00.000Z", version: "1.2.3", plants: 0, tokens: 0 };

async function makeBackup(folder: string): Promise<string> {
  const path = await makeStoreInOneFile(folder);
  await seal(path, description, new AbortController().signal);
  return path;
}

/** Without a log, as backups and what was restored from them are. */
async function makeStoreInOneFile(folder: string): Promise<string> {
  const path = join(folder, "plants.db");
  await openSqlite(path, { isServing: false }).close();
  inspectSqlite(path, description);
  return path;
}
