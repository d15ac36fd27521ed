/** Maps what SQLite throws to the domain's errors, by code. It never reads a message. */
import { SQLiteError } from "bun:sqlite";
import { type ErrorCode, PlantStoreError, sendAgain } from "../../domain/errors.ts";

export const unavailable = "The storage cannot be used right now. Try again shortly.";

export const unknownOutcome = `The storage failed during the commit, so the outcome is unknown. ${sendAgain}`;

const corrupt = "The database file is corrupt. Restore a backup.";

/** By primary result code: an extended one such as SQLITE_IOERR_FSYNC begins with it. */
const failures: readonly [prefix: string, code: ErrorCode, message: string][] = [
  ["SQLITE_FULL", "storage-full", "The storage is full. Nothing was changed; reading still works."],
  ["SQLITE_READONLY", "unavailable", "The storage is read-only right now. Reading still works."],
  ["SQLITE_BUSY", "unavailable", unavailable],
  ["SQLITE_LOCKED", "unavailable", unavailable],
  ["SQLITE_IOERR", "unavailable", unavailable],
  ["SQLITE_CANTOPEN", "unavailable", unavailable],
  ["SQLITE_CORRUPT", "unavailable", corrupt],
  ["SQLITE_NOTADB", "unavailable", corrupt],
  ["SQLITE_NOMEM", "unavailable", unavailable],
  ["SQLITE_PROTOCOL", "unavailable", unavailable],
];

/** The domain's error for a failure of the engine; anything else is returned as it is. */
export function mapError(error: unknown): unknown {
  if (!(error instanceof SQLiteError)) return error;
  const failure = failures.find(([prefix]) => error.code?.startsWith(prefix));
  return failure ? new PlantStoreError(failure[1], failure[2], { cause: error }) : error;
}

/** Makes a method fail with the domain's errors. */
export function mapErrors<Values extends unknown[], Result>(
  method: (...values: Values) => Promise<Result>,
): (...values: Values) => Promise<Result> {
  return async (...values) => {
    try {
      return await method(...values);
    } catch (error) {
      throw mapError(error);
    }
  };
}

/**
 * `mapError` for a commit. One that failed may still be in the log: the next commit overwrites it,
 * but if the process crashes first, recovery applies it.
 */
export function mapCommitError(error: unknown): unknown {
  const failure = mapError(error);
  if (!(failure instanceof PlantStoreError) || failure.code !== "unavailable") return failure;
  return new PlantStoreError("unavailable", unknownOutcome, { cause: error });
}
