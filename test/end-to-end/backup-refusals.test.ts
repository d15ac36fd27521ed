/**
 * Backups and restorations that are called wrongly: refused in one line, without a secret, and
 * nothing is touched.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStorage } from "../../src/storage/open.ts";
import { makeDatabase, serverPassword } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { keptPath } from "../upgrades/kept-data.ts";
import { runProgram, startService } from "./running-service.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let file: string;
let backup: string;

beforeEach(async () => {
  folder = makeTemporaryFolder();
  file = join(folder.path, "plants.db");
  backup = join(folder.path, "plants.backup");
  await (await openStorage(file, { isServing: false })).close();
});

afterEach(() => folder[Symbol.dispose]());

const restore = (to: string, ...flags: string[]) =>
  runProgram(["restore", backup, ...flags], { PLANTSTORE_DATABASE: to });

let served: Awaited<ReturnType<typeof startService>>;
let database: Awaited<ReturnType<typeof makeDatabase>>;
let original: string;
beforeAll(async () => {
  served = await startService();
  database = await makeDatabase();
  original = `${served.database}.backup`;
  await runProgram(["backup", original, "--database", served.database]);
});
afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await database.drop();
});

/** FILE is a store, BACKUP a backup, NEW is not there, SERVED is in use. */
test.each<[line: string, exitCode: number, reason: string]>([
  ["backup", 2, "FILE is missing"],
  ["backup NEW --database NEWER", 1, "there is no such file"],
  ["backup FILE --database FILE --force", 2, "is the database itself"],
  ["restore PIPE --database NEWER", 1, "it is not a backup of Plant Store, or not complete"],
  ["backup SERVED --database FILE --force", 1, "exists already, and is not a backup"],
  ["backup FOLDER --database FILE --force", 1, "exists already, and is not a backup"],
  ["backup NEW/x --database FILE", 1, "there is no such folder"],
  ["backup NEW --database POSTGRES", 1, "it holds no plant store yet"],
  ["backup NEW --database BACKUP-TEXT", 1, "it is not a database"],
  ["backup NEW --database oracle://db", 1, "oracle:"],
  ["restore NEW --database NEWER", 1, "there is no such file"],
  ["restore NEW --database SERVED", 1, "there is no such file"],
  ["restore FOLDER --database NEWER", 1, "it is a folder"],
  ["restore FILE --database NEWER", 1, "it is not a backup of Plant Store, or not complete"],
  ["restore BACKUP --database BACKUP --force", 2, "cannot be restored into itself"],
  ["restore BACKUP --database FILE", 1, "exists already. With --force"],
  ["restore BACKUP --database SERVED --force", 1, "another process is serving it already"],
  ["restore BACKUP --database oracle://db", 1, "oracle:"],
  [
    "restore BACKUP --database postgres://u:s3cret-of-the-server@127.0.0.1:1/x",
    1,
    "nothing listens",
  ],
])("%s", async (line, exitCode, reason) => {
  copyFileSync(original, backup);
  const text = join(folder.path, "text");
  await Bun.$`mkfifo ${join(folder.path, "pipe")}`;
  writeFileSync(text, "no database, whatever its name is".repeat(99));
  const places: Record<string, string> = {
    FILE: file,
    PIPE: join(folder.path, "pipe"),
    BACKUP: backup,
    "BACKUP-TEXT": text,
    FOLDER: folder.path,
    NEW: join(folder.path, "new"),
    "NEW/x": join(folder.path, "new/x"),
    NEWER: join(folder.path, "newer.db"),
    POSTGRES: database.url,
    SERVED: served.database,
  };
  const finished = await runProgram(line.split(" ").map((word) => places[word] ?? word));
  expect(finished).toMatchObject({ exitCode, out: "" });
  expect(finished.errors).toMatch(/^plantstore: .+\n$/);
  expect(finished.errors).toContain(reason);
  expect(finished.errors).not.toContain(serverPassword);
  expect([existsSync(places.NEW ?? ""), existsSync(places.NEWER ?? "")]).toEqual([false, false]);
  const partials = readdirSync(folder.path).filter((name) => name.includes(".partial"));
  expect(partials).toEqual([]);
});

test("restore into PostgreSQL that is not empty", async () => {
  copyFileSync(original, backup);
  await restore(database.url);
  const refused = await restore(database.url, "--force");
  expect(refused).toMatchObject({ exitCode: 1, out: "" });
  expect(refused.errors).toMatch(/^plantstore: postgres:.+ is not empty\. Use a new .+\n$/);
  expect(refused.errors).not.toContain(serverPassword);
});

test("restore into PostgreSQL of an older version", async () => {
  copyFileSync(original, backup);
  const older = await makeDatabase();
  await older.query(await Bun.file(keptPath("0.1.0", "postgres.sql")).text());
  const refused = await restore(older.url);
  expect(refused).toMatchObject({ exitCode: 1, out: "" });
  expect(refused.errors).toMatch(/^plantstore: Cannot open postgres:.+ use the version .+\n$/);
  const schema = await older.query("SELECT version FROM plantstore_schema");
  expect(schema).toEqual([{ version: "1" }]);
  await older.drop();
});
