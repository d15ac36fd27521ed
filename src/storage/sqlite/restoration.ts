/** Puts a file in the place of a store that nobody serves, and keeps the older one beside it. */
import { type Database, SQLiteError } from "bun:sqlite";
import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Restoration, Use } from "../backup.ts";
import { removeLeftover, renameDurably, syncFolderOf } from "../durable-file.ts";
import { connect, readPragma } from "./connection.ts";
import { lockForServing } from "./lock.ts";
import { explainOpening, locate } from "./opening.ts";
import { giveFileToOwnerOf } from "./ownership.ts";

/**
 * The logs are part of the data while they exist, and applied to whatever lies beside them. By the
 * index of the first, those who have the file open know of each other, and of who opens it next.
 */
const companions = ["-wal", "-journal", "-shm"];

export async function restoreSqlite<Result>(
  path: string,
  mayReplace: boolean,
  use: Use<Restoration, Result>,
): Promise<Result> {
  const isNew = !existsSync(path);
  const { file, lock } = claim(path);
  const unpackedPath = `${file}.${crypto.randomUUID()}.partial`;
  function checkReplaceable(): void {
    if (mayReplace || statSync(file).size === 0) return;
    throw new PlantStoreError(
      "conflict",
      `${path} is there already. With --force it is kept under another name, and replaced.`,
    );
  }
  try {
    checkReplaceable();
    return await use({
      unpackedPath,
      async fill() {
        // A command may have made a store there meanwhile.
        checkReplaceable();
        try {
          giveFileToOwnerOf(file, unpackedPath);
          return replace(file, unpackedPath);
        } catch (error) {
          throw explainOpening(path, error);
        }
      },
    });
  } finally {
    for (const suffix of ["", ...companions]) removeLeftover(unpackedPath + suffix);
    // An empty file would be served as an empty store, unless a command is making one of it.
    if (isNew && statSync(file).size === 0 && !hasJournal(file)) rmSync(file);
    lock.close();
  }
}

function claim(path: string) {
  try {
    const file = locate(path, { isToBeReplaced: true });
    // Nobody starts to serve it meanwhile.
    return { file, lock: lockForServing(file) };
  } catch (error) {
    throw explainOpening(path, error);
  }
}

/**
 * The older file keeps its name until the new one takes it, and has both names until then: nobody
 * opens a file with two names, so one that was cut off from its log is not used by mistake, and no
 * command leaves a log of it beside the new one.
 */
function replace(file: string, unpackedPath: string): string | undefined {
  const secondName = findSecondName(file);
  const keptPath = secondName ?? `${file}.before-${new Date().toISOString().replaceAll(":", "-")}`;
  const hasStore = statSync(file).size > 0;
  let keeper: Database | undefined;
  try {
    if (hasStore && secondName === undefined) linkSync(file, keptPath);
    // Behind the second name, with which no command gives it a log any more.
    if (hasStore && existsSync(`${file}-wal`)) keeper = keepOpen(file);
    moveCompanions(file, keptPath);
    syncFolderOf(file);
    if (!hasStore) checkStillEmpty(file);
    checkNoJournal(file);
    renameDurably(unpackedPath, file);
  } catch (error) {
    if (existsSync(unpackedPath)) putBack(file, keptPath);
    throw error;
  } finally {
    keeper?.close();
  }
  return hasStore ? keptPath : undefined;
}

/**
 * While it is open, nobody else who closes the file folds its log into it: that may take long, and
 * ends with the removal of whatever has the name of the log by then. Absent if it cannot be read.
 */
function keepOpen(file: string): Database | undefined {
  let database: Database | undefined;
  try {
    database = connect(file, "read");
    readPragma(database, "schema_version");
    return database;
  } catch (error) {
    database?.close();
    if (!(error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY"))) return undefined;
    throw new PlantStoreError("unavailable", "its log is just being folded into it (try again)");
  }
}

/**
 * An empty file has no second name, so that a command may have made a store of it by now. The log
 * of that would be applied to the new one.
 */
function checkStillEmpty(file: string): void {
  if (statSync(file).size === 0) return;
  throw new PlantStoreError("unavailable", "a store has just been made there (try again)");
}

/**
 * A command that had opened the file before may be giving it its log, and an empty one its first
 * page: until that is done there is a journal. It would be taken back in the new one.
 */
function checkNoJournal(file: string): void {
  if (!hasJournal(file)) return;
  throw new PlantStoreError("unavailable", "a command has just begun to change it (try again)");
}

function hasJournal(file: string): boolean {
  return existsSync(`${file}-journal`);
}

/**
 * What a restoration that was cut off has named it already, and may have moved its log to: under a
 * third name it would be without that.
 */
function findSecondName(file: string): string | undefined {
  const { dev, ino, nlink } = statSync(file);
  if (nlink === 1) return undefined;
  const folder = dirname(file);
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(file)}.before-`))
    .map((name) => join(folder, name))
    .find((path) => {
      const found = statSync(path, { throwIfNoEntry: false });
      return found?.dev === dev && found.ino === ino;
    });
}

/** Its second name goes last: should anything fail here too, nobody serves it. */
function putBack(file: string, keptPath: string): void {
  try {
    moveCompanions(keptPath, file);
    syncFolderOf(file);
    rmSync(keptPath, { force: true });
  } catch {
    // What went wrong first is what is told.
  }
}

/**
 * Whoever opened it under two names all the same, as other programs do, made a log of their own
 * beside the one: it must not take the place of the log that was moved to the other.
 */
function moveCompanions(from: string, to: string): void {
  for (const suffix of companions.filter((each) => existsSync(from + each))) {
    if (existsSync(to + suffix)) {
      const [other, log] = [from, to].map((path) => basename(path) + suffix);
      throw new PlantStoreError(
        "unavailable",
        `its log is ${log}, and ${other} another one (end what has it open, or move that away)`,
      );
    }
    renameSync(from + suffix, to + suffix);
  }
}
