/** A file takes the place of a store: under the lock, and the old one is kept. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "../../../test/storage/tested-storage.ts";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import type { Storage } from "../storage.ts";
import { backupSqlite, restoreSqlite } from "./backup.ts";
import { openSqlite } from "./engine.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let path: string;
let backup: string;

beforeEach(async () => {
  folder = makeTemporaryFolder();
  path = join(folder.path, "data", "plants.db");
  backup = join(folder.path, "new.db");
  await (await openWith(backup, "new")).close();
});

afterEach(() => folder[Symbol.dispose]());

async function openWith(file: string, name: string): Promise<Storage> {
  const storage = openSqlite(file, { isServing: false });
  await storage.apply([create({ name })]);
  return storage;
}

function restore(mayReplace = false): Promise<string | undefined> {
  return restoreSqlite(path, { mayReplace }, async (target) => copyFileSync(backup, target));
}

async function namesIn(file: string): Promise<string[]> {
  const storage = openSqlite(file, { isServing: true, mustExist: true });
  const plants = await storage.list("home", undefined, 9);
  await storage.close();
  return plants.map(({ name }) => name);
}

/** As a crash leaves it: the plant is only in the log. */
async function layCrashed(): Promise<void> {
  const old = await openWith(path, "old");
  const crashed = join(folder.path, "data", "crashed.db");
  for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, crashed + suffix);
  await old.close();
  for (const suffix of ["", "-wal"]) renameSync(crashed + suffix, path + suffix);
}

test("a store is replaced only if it may be, and kept with what its log held", async () => {
  await layCrashed();
  expect(await restore().catch((error) => error)).toMatchObject({ code: "conflict" });
  expect(existsSync(`${path}-wal`)).toBe(true);
  const kept = (await restore(true)) ?? "";
  expect(await namesIn(path)).toEqual(["new"]);
  expect(existsSync(`${kept}-wal`)).toBe(false);
  expect(await namesIn(kept)).toEqual(["old"]);
});

test("a store that was served and is no database any more is replaced, and kept", async () => {
  await (await openWith(path, "old")).close();
  await namesIn(path);
  writeFileSync(path, "garbage");
  const kept = (await restore(true)) ?? "";
  expect(await namesIn(path)).toEqual(["new"]);
  expect(readFileSync(kept, "utf8")).toBe("garbage");
});

test("a database of another program is not replaced", async () => {
  path = join(folder.path, "foreign.db");
  new Database(path).run("CREATE TABLE notes (note TEXT)");
  // Not even if a service was started on it.
  expect(() => openSqlite(path, { isServing: true })).toThrow("of another program");
  const before = readFileSync(path);
  const refused = await restore(true).catch((error) => error);
  expect(refused.message).toContain("only a plant store is replaced");
  expect(readFileSync(path)).toEqual(before);
});

test("the log of a file that was lost is not applied to the new one", async () => {
  await layCrashed();
  renameSync(path, join(folder.path, "lost"));
  touch(`${path}-journal`);
  await restore();
  expect([`${path}-wal`, `${path}-journal`].filter((log) => existsSync(log))).toEqual([]);
  expect(await namesIn(path)).toEqual(["new"]);
});

test("no service can start while a store is replaced", async () => {
  await (await openWith(path, "old")).close();
  await restoreSqlite(path, { mayReplace: true }, async (target) => {
    expect(() => openSqlite(path, { isServing: true })).toThrow("another process is serving it");
    copyFileSync(backup, target);
  });
  expect(await namesIn(path)).toEqual(["new"]);
});

const { signal } = new AbortController();

test("a backup takes a file of an older schema, for which it needs no migration", async () => {
  const old = join(folder.path, "old.db");
  writeFileSync(
    old,
    readFileSync(join(import.meta.dir, "../../../test/upgrades/versions/1.0.0/plants.db")),
  );
  const before = readFileSync(old);
  const target = touch(join(folder.path, "copy.db"));
  await backupSqlite(old, target, { signal });
  expect(readFileSync(old).equals(before)).toBe(true);
});
