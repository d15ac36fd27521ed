/** Maps what SQLite throws to the domain's errors, by code. It never reads a message. */
import { SQLiteError } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";
import { type FailureCodes, mapByCode, unknownOutcome } from "../failures.ts";

/** Primary result codes: an extended one such as SQLITE_IOERR_FSYNC begins with its own. */
const failureCodes: FailureCodes = [
  ["full", ["SQLITE_FULL"]],
  ["readOnly", ["SQLITE_READONLY"]],
  ["corrupt", ["SQLITE_CORRUPT", "SQLITE_NOTADB"]],
  ["unavailable", ["SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_CANTOPEN"]],
  ["unavailable", ["SQLITE_NOMEM", "SQLITE_PROTOCOL"]],
];

/** The domain's error for a failure of the engine; anything else is returned as it is. */
export function mapError(error: unknown): unknown {
  return error instanceof SQLiteError ? mapByCode(error, error.code, failureCodes) : error;
}

/** Runs a query. Its failure becomes the domain's error. */
export function guard<Result>(query: () => Result): Result {
  try {
    return query();
  } catch (error) {
    throw mapError(error);
  }
}

/**
 * `mapError` for a commit. One that failed may still be in the log: the next commit overwrites it,
 * but if the process crashes first, recovery applies it.
 */
export function mapCommitError(error: unknown): unknown {
  const failure = mapError(error);
  const isUnknown = failure instanceof PlantStoreError && failure.code === "unavailable";
  return isUnknown ? unknownOutcome(error) : failure;
}
