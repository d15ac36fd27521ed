/** What clients are told when the storage fails: one table for both engines. */
import { type ErrorCode, PlantStoreError, sendAgain } from "../domain/errors.ts";

const storageFailures = {
  full: ["storage-full", "The storage is full. Nothing was changed; reading still works."],
  readOnly: ["unavailable", "The storage is read-only right now. Reading still works."],
  tooSlow: ["unavailable", "The storage took too long. Nothing was changed; try again shortly."],
  tooBusy: [
    "unavailable",
    "Too many writes at the same time. Nothing was changed; try again shortly.",
  ],
  corrupt: ["unavailable", "The database file is corrupt. Restore a backup."],
  unavailable: ["unavailable", "The storage cannot be used right now. Try again shortly."],
} as const satisfies Record<string, readonly [code: ErrorCode, message: string]>;

type StorageFailure = keyof typeof storageFailures;

/** How an engine's error codes begin that mean each failure. The first that fits counts. */
export type FailureCodes = readonly [failure: StorageFailure, prefixes: readonly string[]][];

/** Returns an error that is no failure of the engine as it is. */
export function mapByCode(error: unknown, code = "", failureCodes: FailureCodes): unknown {
  const found = failureCodes.find(([, prefixes]) => prefixes.some((each) => code.startsWith(each)));
  return found ? storageError(found[0], error) : error;
}

export function storageError(failure: StorageFailure, cause: unknown): PlantStoreError {
  const [code, message] = storageFailures[failure];
  return new PlantStoreError(code, message, { cause });
}

/** Requests can be sent again; commands need other advice. */
export function unknownOutcome(cause: unknown, advice = sendAgain): PlantStoreError {
  const message = "The storage did not confirm the write, so its outcome is unknown.";
  return new PlantStoreError("unavailable", `${message} ${advice}`, { cause });
}
