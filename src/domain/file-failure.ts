/** Says why one of the user's files can't be read or written. */
import { PlantStoreError } from "./errors.ts";

const reasons: Readonly<Record<string, string>> = {
  EACCES: "permission is denied",
  EPERM: "permission is denied",
  EROFS: "the disk is read-only",
  EISDIR: "it is a folder",
  ENOTDIR: "part of its path is a file, not a folder",
  ELOOP: "its symbolic links form a loop",
  ENOSPC: "the disk is full",
  EDQUOT: "your disk quota is used up",
};

export function toFileError(verb: "read" | "write", path: string, cause: unknown): PlantStoreError {
  const message = `Cannot ${verb} ${path}: ${whyNot(verb, cause)}.`;
  return new PlantStoreError("not-found", message, { cause });
}

/** Maps a failed system call; returns any other error as it is. */
export function mapFileError(verb: "read" | "write", path: string, error: unknown): unknown {
  return error instanceof Error && "syscall" in error ? toFileError(verb, path, error) : error;
}

export function whyNot(verb: "read" | "write", cause: unknown): string {
  const { code = "", message } = cause as { code?: string; message: string };
  const missing = verb === "read" ? "there is no such file" : "there is no such folder";
  return code === "ENOENT" ? missing : (reasons[code] ?? message);
}
