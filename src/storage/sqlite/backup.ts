/** Copies a store into a new SQLite file, and replaces a store with such a file. */
import type { Database } from "bun:sqlite";
import { existsSync, renameSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import { removeLeftover, renameDurably, syncFile } from "../durable-file.ts";
import { headerBytes, isDatabase, isStore, isUnused, readBytes } from "../sqlite-header.ts";
import type { Contents, TransferOptions } from "../storage.ts";
import { mapError } from "./errors.ts";
import { migrate, requireExactSchema, requireStore } from "./migrate.ts";
import {
  checkIntegrity,
  connect,
  findFile,
  lockForServing,
  placeFile,
  sizeOf,
  toOpenError,
} from "./open.ts";
import { WorkerClient } from "./worker-client.ts";

const serving = "a service is using it (stop it first)";
const walFiles = ["-wal", "-shm", "-journal"];

/**
 * Writes a snapshot of everything to the empty file at `target`, while a service keeps running. The
 * file may have an older schema, so you can make a backup before an upgrade.
 */
export async function backupSqlite(
  path: string,
  target: string,
  { signal, mustBeIdle }: Pick<TransferOptions, "signal" | "mustBeIdle">,
): Promise<void> {
  let lock: Database | undefined;
  let file: string | undefined;
  try {
    file = findFile(path);
    if (file === undefined) throw new PlantStoreError("unavailable", "there is no such file");
    if (mustBeIdle) lock = lockForServing(file, serving);
    const database = connect(file);
    try {
      requireStore(database);
    } finally {
      database.close();
    }
  } catch (error) {
    lock?.close();
    throw toOpenError(path, error);
  }
  // In another thread, so that Ctrl+C works while SQLite is busy.
  const worker = WorkerClient.start(file);
  try {
    signal.throwIfAborted();
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    await Promise.race([worker.vacuumInto(target), aborted]);
  } finally {
    worker.terminate();
    lock?.close();
  }
}

/**
 * Counts what is in a file. Fails with `unavailable`, in words that follow "Cannot …: ", unless
 * it's a store with exactly the schema of its version, which may be this one or 1.0. With
 * `mustBeWhole`, it also fails if the file is corrupt.
 */
export function inspectSqlite(file: string, mustBeWhole: boolean): Contents {
  let database: Database | undefined;
  try {
    database = connect(file);
    requireStore(database);
    requireExactSchema(database);
    if (mustBeWhole) checkIntegrity(database, "integrity_check");
    return { plants: countRows(database, "plants"), tokens: countRows(database, "tokens") };
  } catch (error) {
    throw mapError(error);
  } finally {
    database?.close();
  }
}

function countRows(database: Database, table: "plants" | "tokens"): number {
  const counting = `SELECT count(*) AS count FROM ${table}`;
  return Number(database.query<{ count: bigint }, []>(counting).get()?.count);
}

/**
 * Opens a file that is written or read in one go, with the newest schema. Until it's complete, it
 * needn't survive a power cut.
 */
export function openScratch(file: string): Database {
  const database = connect(file);
  database.run("PRAGMA synchronous = OFF");
  database.run("PRAGMA journal_mode = OFF");
  migrate(database);
  return database;
}

/**
 * Calls `makeFile` to write the new store beside the old one, and swaps the two. Resolves once
 * that's durable, to where the old one is kept, if there was one.
 */
export async function restoreSqlite(
  path: string,
  { mayReplace = false }: Pick<TransferOptions, "mayReplace">,
  makeFile: (path: string) => Promise<void>,
): Promise<string | undefined> {
  const { file, lock } = lockTarget(path, mayReplace);
  const partial = `${file}.${crypto.randomUUID()}.partial`;
  try {
    await makeFile(partial);
    return swap(path, file, partial);
  } finally {
    for (const suffix of ["", ...walFiles]) removeLeftover(partial + suffix);
    // The restore failed. While the lock is held, no service can start on the file.
    if (!existsSync(file)) removeLeftover(`${file}-serving`);
    lock.close();
  }
}

/** No service can start on the file while the lock is held. */
function lockTarget(path: string, mayReplace: boolean): { file: string; lock: Database } {
  try {
    const file = findFile(path) ?? placeFile(path);
    if (sizeOf(file) > 0) requireOurs(file);
    // Don't lock a file that is refused below: the lock would make it look like a store.
    if (mayReplace || sizeOf(file) === 0) return { file, lock: lockForServing(file, serving) };
  } catch (error) {
    throw toOpenError(path, error);
  }
  throw new PlantStoreError(
    "conflict",
    `${path} exists already. With --force it is replaced, and kept under another name.`,
  );
}

/**
 * Looks at the header only: the rest may be damaged, or still in its log. If the header is lost as
 * well, the lock that a service has left shows that the file was a store.
 */
function requireOurs(file: string): void {
  const header = readBytes(file, 0, headerBytes);
  if (isStore(header) || isUnused(header)) return;
  if (!isDatabase(header) && existsSync(`${file}-serving`)) return;
  throw new PlantStoreError(
    "unavailable",
    "it is not a plant store, and only a plant store is replaced (move it away first)",
  );
}

/** Moves the log into the old store first, so that a single file is kept. */
function swap(path: string, file: string, partial: string): string | undefined {
  const kept = `${file}.before-${new Date().toISOString().replaceAll(":", "-")}`;
  const hasStore = sizeOf(file) > 0;
  // WAL files that are still there belong to a file that is lost or couldn't be read.
  const suffixes = hasStore ? [...walFiles, ""] : walFiles;
  try {
    syncFile(partial);
    if (hasStore) checkpoint(file);
    moveAll(file, kept, suffixes);
    renameDurably(partial, file);
  } catch (error) {
    if (existsSync(partial)) moveAll(kept, file, suffixes.toReversed());
    throw toOpenError(path, error);
  }
  return hasStore ? kept : undefined;
}

function moveAll(from: string, to: string, suffixes: readonly string[]): void {
  for (const suffix of suffixes) {
    if (existsSync(from + suffix)) renameSync(from + suffix, to + suffix);
  }
}

function checkpoint(file: string): void {
  let database: Database | undefined;
  let isBusy = false;
  try {
    database = connect(file);
    const fold = database.query<{ busy: bigint }, []>("PRAGMA wal_checkpoint(TRUNCATE)");
    isBusy = fold.get()?.busy === 1n;
  } catch {
    // A corrupt file may be why it is being replaced. Its log is kept beside it.
  } finally {
    database?.close();
  }
  if (!isBusy) return;
  throw new PlantStoreError("unavailable", "another command is using it (try again)");
}
