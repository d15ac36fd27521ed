/** Failures of the system and the network in words, for operators. Engines and commands add what only they know. */
import { type ErrorCode, PlantStoreError } from "../domain/errors.ts";

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

type Access = "read" | "write";

/** Why a file can't be read or written, in words that follow "Cannot …: ". */
export function describeFileError(access: Access, cause: unknown): string {
  const { code, message } = cause as { code?: string; message: string };
  if (code === "ENOENT") return `there is no such ${access === "read" ? "file" : "folder"}`;
  return describeSystemError(cause) ?? message;
}

export function toFileError(access: Access, path: string, cause: unknown): PlantStoreError {
  const message = `Cannot ${access} ${path}: ${describeFileError(access, cause)}.`;
  return new PlantStoreError(fileErrorCode(cause), message, { cause });
}

function fileErrorCode(cause: unknown): ErrorCode {
  const { code } = cause as { code?: string };
  if (code === "ENOENT") return "not-found";
  return code === "ENOSPC" || code === "EDQUOT" ? "storage-full" : "unavailable";
}

/** Maps a failed system call; returns any other error as it is. */
export function mapFileError(access: Access, path: string, error: unknown): unknown {
  return error instanceof Error && "syscall" in error ? toFileError(access, path, error) : error;
}
