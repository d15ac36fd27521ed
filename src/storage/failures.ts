/**
 * Failures of the storage, the system and the network in words: one table for clients, and one for
 * operators. Engines and commands add what only they know.
 */
import { type ErrorCode, PlantStoreError, sendAgain } from "../domain/errors.ts";

/** As clients get them. */
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

/** By the system's code, in words that follow "Cannot …: ". */
const systemErrors: Readonly<Record<string, string>> = {
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EROFS: "the disk is read-only",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of its path is a file, or a link that leads nowhere",
  EEXIST: "a part of its path is a file, or a link that leads nowhere",
  ELOOP: "its symbolic links form a loop",
  ENOSPC: "the disk is full",
  EDQUOT: "your disk quota is used up",
  ECONNREFUSED: "the connection is refused",
  ECONNRESET: "the connection was closed",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the host",
  ENOTFOUND: "the host is not known",
  EAI_AGAIN: "the host cannot be looked up",
  ETIMEDOUT: "the host doesn't respond",
  EPROTO: "it doesn't speak https",
  ERR_SSL_WRONG_VERSION_NUMBER: "it doesn't speak https",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  CERT_HAS_EXPIRED: "its certificate has expired",
};

/** Absent if the error isn't one of the system's, or not a known one. */
export function describeSystemError(error: unknown): string | undefined {
  return systemErrors[(error as { code?: string }).code ?? ""];
}

export function toFileError(verb: "read" | "write", path: string, cause: unknown): PlantStoreError {
  const message = `Cannot ${verb} ${path}: ${whyNot(verb, cause)}.`;
  return new PlantStoreError("not-found", message, { cause });
}

/** Maps a failed system call; returns any other error as it is. */
export function mapFileError(verb: "read" | "write", path: string, error: unknown): unknown {
  return error instanceof Error && "syscall" in error ? toFileError(verb, path, error) : error;
}

export function whyNot(verb: "read" | "write", cause: unknown): string {
  const { code, message } = cause as { code?: string; message: string };
  if (code === "ENOENT") return `there is no such ${verb === "read" ? "file" : "folder"}`;
  return describeSystemError(cause) ?? message;
}
