/**
 * Opens the SQLite file of a store: finds or creates it, checks that it is ours, and connects with
 * the settings that durability rests on.
 */
import { Database, SQLiteError } from "bun:sqlite";
import {
  accessSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { PlantStoreError } from "../../domain/errors.ts";
import { describeSystemError } from "../../shared/system-errors.ts";
import { syncFolderOf } from "../durable-file.ts";

/** Marks a file as Plant Store's, to tell it from other programs' databases. */
export const applicationId = 0x504c4e54;

/** Another process (a command beside the service) may hold the write lock for a moment. */
const busyTimeoutMs = 5_000;
const busyPauseMs = 10;

/** Checking 1 MiB takes 5 to 9 ms, and a restart must be quick. */
const checkedMebibytesMax = 16;

/**
 * The file that a path leads to, with links resolved: its WAL files and its lock are beside it.
 * Absent if there is no such file. A file that is only read `mayBeOthers`.
 */
export function findFile(path: string, mayBeOthers = false): string | undefined {
  if (!mayBeOthers) refuseRoot(resolve(path));
  const stats = statSync(resolve(path), { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (stats.isDirectory()) throw new PlantStoreError("unavailable", "it is a folder");
  if (!stats.isFile()) throw new PlantStoreError("unavailable", "it is not a regular file");
  const file = realpathSync(resolve(path));
  if (!mayBeOthers) refuseRoot(file);
  return file;
}

/**
 * Fails if root would open somebody else's store: the owner couldn't use the files that root
 * creates there, and could lead root to any file with a link.
 */
function refuseRoot(path: string): void {
  if (process.getuid?.() !== 0) return;
  for (const each of [dirname(path), path]) {
    for (const look of [lstatSync, statSync]) {
      const uid = look(each, { throwIfNoEntry: false })?.uid ?? 0;
      if (uid === 0) continue;
      const advice = `run the command as that user: sudo -u '#${uid}' plantstore …`;
      throw new PlantStoreError(
        "unavailable",
        `it belongs to user ${uid}, not to root (${advice})`,
      );
    }
  }
}

/** Creates the folder of a new file, if it's missing. Returns the file's path with links resolved. */
export function prepareFolderFor(path: string): string {
  const folder = dirname(resolve(path));
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  // SQLite syncs the folder of its file, but none above it.
  for (
    let made = folder;
    first !== undefined && made.length >= first.length;
    made = dirname(made)
  ) {
    syncFolderOf(made);
  }
  return join(realpathSync(folder), basename(path));
}

/** Creates an empty file that only its owner can read; SQLite's own would be open to everyone. */
export function createFile(path: string): string {
  const file = prepareFolderFor(path);
  closeSync(openSync(file, "a", 0o600));
  return realpathSync(file);
}

/** Fails if the file is missing and its log isn't: SQLite would delete the log, plants and all. */
export function checkLog(file: string): void {
  const log = `${file}-wal`;
  if (sizeOf(file) > 0 || sizeOf(log) === 0) return;
  throw new PlantStoreError(
    "unavailable",
    `it is missing or empty, but its log ${basename(log)} may hold plants (put the file back, or ` +
      "delete the log)",
  );
}

/** Opens an existing file, without changing anything in it. */
export function connect(file: string): Database {
  const database = new Database(file, {
    create: false,
    readwrite: true,
    strict: true,
    // Without it, integers beyond 2^53 are rounded silently.
    safeIntegers: true,
  });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    database.run("PRAGMA foreign_keys = ON");
    // A command must not execute what somebody has put into the schema of a file from elsewhere.
    database.run("PRAGMA trusted_schema = OFF");
    // With WAL, FULL syncs the log at every commit, so acknowledged writes survive a power cut.
    database.run("PRAGMA synchronous = FULL");
    // Without this, a sync on macOS ends in the disk's cache. Other systems ignore it.
    database.run("PRAGMA fullfsync = ON");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * With a write-ahead log, readers and the writer don't block each other. The file remembers the
 * mode. Where SQLite can't share memory, it silently stays in another one.
 */
export function useWriteAheadLog(database: Database): void {
  const change = database.query<{ journal_mode: string }, []>("PRAGMA journal_mode = WAL");
  const mode = waitWhileBusy(() => change.get());
  if (mode?.journal_mode === "wal") return;
  throw new PlantStoreError("unavailable", "its file system does not support a write-ahead log");
}

/** For statements that ignore SQLite's busy timeout. */
function waitWhileBusy<Result>(work: () => Result): Result {
  for (const untilMs = performance.now() + busyTimeoutMs; ; Bun.sleepSync(busyPauseMs)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > untilMs) throw error;
    }
  }
}

/** Fails if a small file is corrupt. A large one would take too long at every start. */
export function checkSmallFile(database: Database, file: string): void {
  if (sizeOf(file) + sizeOf(`${file}-wal`) > checkedMebibytesMax * 2 ** 20) return;
  checkIntegrity(database, "quick_check");
}

export function checkIntegrity(database: Database, check: "quick_check" | "integrity_check"): void {
  const [row] = database.query<Record<string, string>, []>(`PRAGMA ${check}(1)`).all();
  const finding = String(Object.values(row ?? {})[0]).replaceAll(/\s+/g, " ");
  if (finding !== "ok") throw new PlantStoreError("unavailable", `it is corrupt (${finding})`);
}

/** Reports a read-only file at the start, not at the first write. */
export function checkWritable(database: Database): void {
  database.run("BEGIN IMMEDIATE");
  database.run("ROLLBACK");
}

export function readPragma(database: Database, name: string): bigint {
  const row = database.query<Record<string, bigint>, []>(`PRAGMA ${name}`).get();
  return Object.values(row ?? {})[0] ?? 0n;
}

export function sizeOf(path: string): number {
  return look(path)?.size ?? 0;
}

function look(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** Identifies a file, whose `stats` are known, and its WAL files. */
export function identify(file: string, stats: Stats | undefined): string {
  const found = [stats, look(`${file}-wal`), look(`${file}-shm`)];
  return found.map((each) => `${each?.dev} ${each?.ino}`).join();
}

/**
 * Fails with `unavailable` unless the files are the known ones (see `identify`). If the file was
 * removed or replaced, it's still open here, but its plants would be gone after the next start. The
 * same goes for its log. Without the log's index, processes wouldn't see each other's commits.
 */
export function checkStillThere(file: string, known: string): void {
  try {
    const found = look(file);
    if (identify(file, found) === known && found?.size !== 0) return;
  } catch {
    // It can't be reached any more.
  }
  throw new PlantStoreError("unavailable", "The database file was removed, replaced or emptied.");
}

/**
 * Lets one process at a time serve a file. Commands take the lock only if they would disturb a
 * service. The lock is an exclusive transaction on a small database beside the file, so the kernel
 * releases it when the process ends, and there are no stale locks.
 */
export function lockForServing(
  file: string,
  refusal = "another process is serving it already (stop that one, or choose another file)",
): Database {
  const lockPath = `${file}-serving`;
  closeSync(openSync(lockPath, "a", 0o600));
  const lock = new Database(lockPath, { create: false, readwrite: true });
  try {
    lock.run("PRAGMA busy_timeout = 0");
    // Nothing is ever written, so it needs no journal.
    lock.run("PRAGMA journal_mode = MEMORY");
    lock.run("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    throw new PlantStoreError("unavailable", refusal);
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY") === true;
}

export function toOpenError(path: string, cause: unknown): PlantStoreError {
  const message = `Cannot open ${path}: ${describeFailure(path, cause)}.`;
  return new PlantStoreError("unavailable", message, { cause });
}

function describeFailure(path: string, error: unknown): string {
  const code = (error as { code?: string }).code ?? "";
  const reason = describeWithAdvice(error);
  if (reason !== undefined) return reason;
  if (code === "ENOENT") return "it cannot be created there (choose another folder)";
  if (code.startsWith("SQLITE_NOTADB")) return "it is not a database (choose another file)";
  if (code.startsWith("SQLITE_CORRUPT")) return "it is corrupt (restore a backup)";
  if (code.startsWith("SQLITE_CANTOPEN")) {
    return whyNotWritable(path) ?? "it cannot be opened or created there";
  }
  if (code.startsWith("SQLITE_READONLY")) return whyNotWritable(path) ?? "it cannot be written";
  if (code.startsWith("SQLITE_BUSY")) return "another program is using it (try again)";
  if (code.startsWith("SQLITE_FULL")) return "the disk is full";
  if (code.startsWith("SQLITE_IOERR")) return "the disk reports an error, or is full";
  return error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
}

/** The number is what `chown` needs where the user has no name, as in a container. */
const denied = ` (user ${process.getuid?.()} must be able to write the file and its folder)`;

const advice: Readonly<Record<string, string>> = {
  EACCES: denied,
  EPERM: denied,
  EROFS: " (mount a writable volume there, or choose another file)",
};

function describeWithAdvice(error: unknown): string | undefined {
  const reason = describeSystemError(error);
  return reason && `${reason}${advice[(error as { code: string }).code] ?? ""}`;
}

/** SQLite doesn't say whether permissions or the disk are to blame; the system does. */
function whyNotWritable(path: string): string | undefined {
  for (const each of [path, dirname(path)]) {
    try {
      accessSync(each, constants.W_OK);
    } catch (error) {
      const reason = describeWithAdvice(error);
      if (reason !== undefined) return reason;
    }
  }
  return undefined;
}
