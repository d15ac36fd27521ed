/** Maps what SQLite throws to the domain's errors, by code. It never reads a message. */
import { SQLiteError } from "bun:sqlite";
import { PlantStoreError } from "../../domain/errors.ts";
import { type StorageFailure, storageError, unknownOutcome } from "../failures.ts";

/** By primary result code: an extended one such as SQLITE_IOERR_FSYNC begins with it. */
const failures: readonly [prefix: string, failure: StorageFailure][] = [
  ["SQLITE_FULL", "full"],
  ["SQLITE_READONLY", "readOnly"],
  ["SQLITE_CORRUPT", "corrupt"],
  ["SQLITE_NOTADB", "corrupt"],
  ["SQLITE_BUSY", "unavailable"],
  ["SQLITE_LOCKED", "unavailable"],
  ["SQLITE_IOERR", "unavailable"],
  ["SQLITE_CANTOPEN", "unavailable"],
  ["SQLITE_NOMEM", "unavailable"],
  ["SQLITE_PROTOCOL", "unavailable"],
];

/** The domain's error for a failure of the engine; anything else is returned as it is. */
export function mapError(error: unknown): unknown {
  if (!(error instanceof SQLiteError)) return error;
  const failure = failures.find(([prefix]) => error.code?.startsWith(prefix));
  return failure ? storageError(failure[1], error) : error;
}

type Methods = Record<string, (...values: never[]) => Promise<unknown>>;

/** Makes every method fail with the domain's errors. */
export function mapErrors<Group extends object>(methods: Group): Group {
  const mapped = Object.entries(methods as Methods).map(([name, method]) => [
    name,
    async (...values: never[]) => {
      try {
        return await method(...values);
      } catch (error) {
        throw mapError(error);
      }
    },
  ]);
  return Object.fromEntries(mapped);
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
