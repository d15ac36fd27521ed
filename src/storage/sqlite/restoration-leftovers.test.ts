/** What a restoration leaves: no files of its own, and those of others as they are named. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import type { Storage } from "../../domain/storage.ts";
import * as durableFile from "../durable-file.ts";
import { openSqlite } from "./engine.ts";
import { restoreSqlite } from "./restoration.ts";

const tally = { plants: 0, plantsInAll: 0 };
const { signal } = new AbortController();

let folder: ReturnType<typeof makeTemporaryFolder>;
let path: string;

beforeEach(() => {
  folder = makeTemporaryFolder();
  path = join(folder.path, "data", "plants.db");
  mkdirSync(dirname(path));
});

afterEach(() => folder[Symbol.dispose]());

test("where it may not replace a store nothing is unpacked before that is told", async () => {
  await openSqlite(path, { isServing: false }).close();
  let isUnpacked = false;
  const restoring = restoreSqlite(path, false, async () => {
    isUnpacked = true;
  });
  await expect(restoring).rejects.toThrow("With --force it is kept");
  expect(isUnpacked).toBe(false);
});

test("one that fails leaves no log of what it unpacked", async () => {
  const restoring = restoreSqlite(path, false, async ({ unpackedPath }) => {
    for (const suffix of ["", "-wal", "-shm", "-journal"]) touch(unpackedPath + suffix);
    throw new Error("enough");
  });
  await expect(restoring).rejects.toThrow("enough");
  expect(readdirSync(dirname(path))).toEqual(["plants.db-serving"]);
});

test("one that fails leaves an empty file that was there before", async () => {
  touch(path);
  const restoring = restoreSqlite(path, false, async () => {
    throw new Error("enough");
  });
  await expect(restoring).rejects.toThrow("enough");
  expect(existsSync(path)).toBe(true);
});

test("an older store that has another name besides is kept under one that tells what it is", async () => {
  await openSqlite(path, { isServing: false }).close();
  const { ino } = statSync(path);
  linkSync(path, join(dirname(path), "mine.db"));
  const kept = await restoreSqlite(path, true, ({ unpackedPath, fill }) => {
    touch(unpackedPath);
    return fill(tally, signal);
  });
  expect(kept).toStartWith(`${path}.before-`);
  expect(statSync(kept ?? "").ino).toBe(ino);
});

test("one that is run again leaves the log that the first had moved, whatever has come since", async () => {
  await openSqlite(path, { isServing: false }).close();
  const keptPath = `${path}.before-2026-07-01T12-00-00.000Z`;
  linkSync(path, keptPath);
  writeFileSync(`${keptPath}-wal`, "what was answered");
  // As of another program that has it open.
  touch(`${path}-wal`);
  const restoring = restoreSqlite(path, true, ({ unpackedPath, fill }) => {
    touch(unpackedPath);
    return fill(tally, signal);
  });
  await expect(restoring).rejects.toThrow("and plants.db-wal another one");
  expect(readFileSync(`${keptPath}-wal`, "utf8")).toBe("what was answered");
  expect(statSync(path).ino).toBe(statSync(keptPath).ino);
});

test("a store that a command makes of an empty file at the last moment is left with its log", async () => {
  let command: Storage | undefined;
  const spy = spyOn(durableFile, "syncFolderOf").mockImplementation(() => {
    spy.mockRestore();
    command = openSqlite(path, { isServing: false });
  });
  const restoring = restoreSqlite(path, false, ({ unpackedPath, fill }) => {
    writeFileSync(unpackedPath, "another store");
    return fill(tally, signal);
  });
  await expect(restoring).rejects.toThrow("a store has just been made there");
  await command?.ping();
  await command?.close();
  expect(readdirSync(dirname(path)).toSorted()).toEqual(["plants.db", "plants.db-serving"]);
});

test.each([
  ["new", undefined],
  ["empty", ""],
  ["restored and not opened yet", "a store"],
])(
  "a journal that a command begins at the last moment, of a file that is %s, is left to it",
  async (_, text) => {
    if (text !== undefined) writeFileSync(path, text);
    const spy = spyOn(durableFile, "syncFolderOf").mockImplementation(() => {
      spy.mockRestore();
      touch(`${path}-journal`);
    });
    const restoring = restoreSqlite(path, true, ({ unpackedPath, fill }) => {
      writeFileSync(unpackedPath, "another store");
      return fill(tally, signal);
    });
    await expect(restoring).rejects.toThrow("has just begun to change it");
    expect(readFileSync(path, "utf8")).toBe(text ?? "");
    const left = ["plants.db", "plants.db-journal", "plants.db-serving"];
    expect(readdirSync(dirname(path)).toSorted()).toEqual(left);
  },
);

test("nobody who closes the older file meanwhile folds its log, and removes one by its name", async () => {
  const command = openSqlite(path, { isServing: false });
  const other = new Database(path);
  other.query("SELECT count(*) FROM plants").get();
  await command.close();
  const { size } = statSync(path);
  const spy = spyOn(durableFile, "syncFolderOf").mockImplementation(() => {
    spy.mockRestore();
    other.close();
  });
  const kept = await restoreSqlite(path, true, ({ unpackedPath, fill }) => {
    touch(unpackedPath);
    return fill(tally, signal);
  });
  expect(statSync(kept ?? "").size).toBe(size);
  expect(existsSync(`${kept}-wal`)).toBe(true);
});
