/** Backs up a store to a plain SQLite file, and replaces a store with such a file. */
import type { Database } from "bun:sqlite";
import { closeSync, existsSync, linkSync, openSync, renameSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import { mapFileError } from "../../shared/system-errors.ts";
import { createDurably, removeLeftover, syncFile, syncFolderOf } from "../durable-file.ts";
import { skippedEvents } from "../event-cleanup.ts";
import type { Contents } from "../storage.ts";
import {
  checkLog,
  connect,
  findFile,
  lockForServing,
  prepareFolderFor,
  sizeOf,
  toOpenError,
} from "./open.ts";
import { requireStore } from "./schema.ts";
import { WorkerClient } from "./worker-client.ts";

const serving = "a service is using it (stop it first)";

/**
 * The name `target` appears only once the file is complete, checked and durable. Fails with
 * `conflict` if there is such a file by then.
 */
export function backupSqlite(path: string, target: string, signal: AbortSignal): Promise<Contents> {
  const file = findStore(path);
  return createDurably(target, async (_, partial) => {
    try {
      return await inWorker(signal, async (worker) => {
        await worker.call("vacuumInto", file, partial);
        return worker.call("checkFile", partial);
      });
    } finally {
      removeLeftover(`${partial}-journal`);
    }
  });
}

/**
 * Checks the backup and replaces a store that isn't served with a copy of it. Resolves once that
 * is durable, with the name under which the old file is kept, if there was one.
 */
export async function restoreSqlite(
  path: string,
  backup: string,
  signal: AbortSignal,
): Promise<Contents & { readonly kept: string | undefined }> {
  const source = findStore(backup, true);
  await refuseGzip(backup).catch((error) => {
    throw mapFileError("read", backup, error);
  });
  using cleanup = new DisposableStack();
  const file = lockTarget(path, cleanup);
  try {
    const partial = createPartial(file, cleanup);
    const contents = await inWorker(signal, async (worker) => {
      const checked = await worker.call("checkFile", source);
      await worker.call("vacuumInto", source, partial);
      return checked;
    });
    startNewLog(partial, file);
    syncFile(partial);
    return { ...contents, kept: replaceStore(file, partial) };
  } catch (error) {
    const isKnown = signal.aborted || error instanceof PlantStoreError;
    throw isKnown ? error : toOpenError(path, error);
  }
}

/** A store that isn't served, as of one moment, and the end of that. */
export function openIdle(path: string): { database: Database; [Symbol.dispose](): void } {
  const file = findStore(path);
  const opened = new DisposableStack();
  try {
    opened.use(lockForServing(file, serving));
    const database = opened.use(connect(file));
    requireStore(database);
    database.run("BEGIN");
    return { database, [Symbol.dispose]: () => opened.dispose() };
  } catch (error) {
    opened.dispose();
    throw toOpenError(path, error);
  }
}

function findStore(path: string, mayBeOthers?: boolean): string {
  try {
    const file = findFile(path, mayBeOthers);
    if (file === undefined) throw new PlantStoreError("unavailable", "there is no such file");
    checkLog(file);
    return file;
  } catch (error) {
    throw toOpenError(path, error);
  }
}

async function refuseGzip(path: string): Promise<void> {
  const [first, second] = await Bun.file(path).slice(0, 2).bytes();
  if (first !== 0x1f || second !== 0x8b) return;
  const advice = `Unpack it first: gunzip < ${path} > ${path}.db`;
  throw new PlantStoreError(
    "unavailable",
    `${path} is compressed, as backups of 2.0 are. ${advice}`,
  );
}

/** In another thread, so that Ctrl+C works while SQLite is busy. */
async function inWorker<Result>(
  signal: AbortSignal,
  work: (worker: WorkerClient) => Promise<Result>,
): Promise<Result> {
  const worker = WorkerClient.start();
  try {
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    return await Promise.race([work(worker), aborted]);
  } finally {
    worker.terminate();
  }
}

/** Where the store is, or would be. Until `cleanup` runs, no service can start on it. */
function lockTarget(path: string, cleanup: DisposableStack): string {
  try {
    const file = findFile(path) ?? prepareFolderFor(path);
    cleanup.adopt(lockForServing(file, serving), (lock) => lock.close());
    // If the restore fails, there may be no store that the lock's file belongs to.
    cleanup.defer(() => {
      if (!existsSync(file)) removeLeftover(`${file}-serving`);
    });
    return file;
  } catch (error) {
    throw toOpenError(path, error);
  }
}

/** An empty file beside the store, for the copy of the backup. */
function createPartial(file: string, cleanup: DisposableStack): string {
  const partial = `${file}.${crypto.randomUUID()}.partial`;
  cleanup.defer(() => {
    for (const suffix of ["", "-journal"]) removeLeftover(partial + suffix);
  });
  closeSync(openSync(partial, "wx", 0o600));
  return partial;
}

/**
 * Numbers the next events higher than any in the backup and in the store that it replaces. Without
 * the backup's events, the ones that are kept have no gap.
 */
function startNewLog(file: string, replaced: string): void {
  using database = connect(file);
  database.run("DELETE FROM events");
  try {
    // Of an empty file, SQLite would delete the log.
    if (sizeOf(replaced) > 0) addCounters(database, replaced);
  } catch (error) {
    // A corrupt store may be why it is replaced. One that is busy, or a full disk, is no reason to
    // number events lower than it did.
    if (!isCorrupt(error)) throw error;
  }
  database.run(`UPDATE gardens SET last_event = last_event + ${skippedEvents}`);
}

function addCounters(database: Database, replaced: string): void {
  database.query("ATTACH ? AS replaced").run(replaced);
  database.run(`INSERT INTO gardens (garden, last_id, plants, keys, last_event)
    SELECT garden, 0, 0, 0, last_event FROM replaced.gardens WHERE true
    ON CONFLICT DO UPDATE SET last_event = max(last_event, excluded.last_event)`);
}

/** Whether it is no store, or not a whole one. (SQLITE_ERROR: it has no such table.) */
function isCorrupt(error: unknown): boolean {
  const { code = "" } = error as { code?: string };
  return /^SQLITE_(?:CORRUPT|NOTADB|ERROR)/.test(code);
}

/**
 * Gives the store's name to the new file, and keeps the old one under another. The name always leads
 * to a store. Until it leads to the new one, every step is undone if a later one fails.
 */
function replaceStore(file: string, partial: string): string | undefined {
  const kept = `${file}.before-${new Date().toISOString().replaceAll(":", "-")}`;
  const hasStore = sizeOf(file) > 0;
  using undo = new DisposableStack();
  if (hasStore) {
    checkpoint(file);
    linkSync(file, kept);
    undo.defer(() => removeLeftover(kept));
  }
  // A lost or corrupt file may have left a log, which SQLite would apply to the new file.
  for (const suffix of ["-wal", "-shm", "-journal"]) {
    if (!existsSync(file + suffix)) continue;
    renameSync(file + suffix, kept + suffix);
    undo.defer(() => renameSync(kept + suffix, file + suffix));
  }
  syncFolderOf(file);
  renameSync(partial, file);
  undo.move();
  syncFolderOf(file);
  return hasStore ? kept : undefined;
}

/** Moves the log into the old store, so that a single file is kept. */
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
  throw new PlantStoreError("unavailable", `Another command is using ${file}. Try again.`);
}
