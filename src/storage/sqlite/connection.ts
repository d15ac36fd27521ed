/** Opens a SQLite file with the settings that the promises of storage rest on. */
import { Database, SQLiteError } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";

/** Another process (a command beside the service) may hold the write lock for a moment. */
const busyTimeoutMs = 5_000;
const busyPauseMs = 10;

/** Marks a file as Plant Store's, so that no other program's database is taken for one. */
export const applicationId = 0x504c4e54;

/** Opens a file that is there, without changing anything in it. */
export function connect(path: string, access: "read" | "write" = "write"): Database {
  const database = new Database(path, {
    ...(access === "read" ? { readonly: true } : { create: false, readwrite: true }),
    strict: true,
    // Without it, integers beyond 2^53 are rounded in silence.
    safeIntegers: true,
  });
  try {
    database.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    database.run("PRAGMA foreign_keys = ON");
    // With WAL, FULL syncs the log at every commit: what was answered survives a power cut.
    database.run("PRAGMA synchronous = FULL");
    // A sync of macOS ends in the cache of the disk otherwise. Other systems do not know it.
    database.run("PRAGMA fullfsync = ON");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Readers and the writer do not wait for each other. The mode is kept in the file. SQLite stays
 * with another one, and does not fail, where it cannot share memory.
 */
export function useWriteAheadLog(database: Database): void {
  const change = database.query<{ journal_mode: string }, []>("PRAGMA journal_mode = WAL");
  const mode = waitWhileBusy(() => change.get());
  if (mode?.journal_mode === "wal") return;
  throw new PlantStoreError("unavailable", "no write-ahead log can be kept where it lies");
}

/** For what SQLite does not wait with, lest two who do the same wait for each other. */
function waitWhileBusy<Result>(work: () => Result): Result {
  for (const untilMs = performance.now() + busyTimeoutMs; ; Bun.sleepSync(busyPauseMs)) {
    try {
      return work();
    } catch (error) {
      const isBusy = error instanceof SQLiteError && error.code === "SQLITE_BUSY";
      if (!isBusy || performance.now() > untilMs) throw error;
    }
  }
}

export function readPragma(database: Database, name: string): bigint {
  const row = database.query<Record<string, bigint>, []>(`PRAGMA ${name}`).get();
  return Object.values(row ?? {})[0] ?? 0n;
}

/** Of a database that is attached under the name `schema`; `main` is the one that was opened. */
export function countRows(database: Database, schema: string, table: string): number {
  const counting = `SELECT count(*) AS count FROM ${schema}.${table}`;
  return Number(database.query<{ count: bigint }, []>(counting).get()?.count);
}
