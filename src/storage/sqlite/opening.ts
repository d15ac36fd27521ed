/** Finds the file of a store, and says in one line why it cannot be opened. */
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { PlantStoreError } from "../../domain/errors.ts";
import type { OpenOptions } from "../../domain/storage.ts";
import { syncFolderOf } from "../durable-file.ts";
import { damaged } from "./first-look.ts";
import { giveToOwnerOf } from "./ownership.ts";

const missing = "there is no such file";

/**
 * The file itself, behind any symbolic link: the lock and the write-ahead log lie beside it. Only
 * what is to be replaced may have several names: under each of them it would have another log.
 */
export function locate(
  path: string,
  options: Pick<OpenOptions, "mustExist"> & { readonly isToBeReplaced?: boolean } = {},
): string {
  const file = resolve(path);
  // Fails where its folder cannot be looked into: it may be there.
  if (statSync(file, { throwIfNoEntry: false }) === undefined) {
    if (options.mustExist) throw new PlantStoreError("unavailable", missing);
    makeFolder(dirname(file));
    // Before SQLite does, which would let everyone on the machine read it.
    const descriptor = openSync(file, "a", 0o600);
    // Of the folder that it lies in: a link may lead out of the one that it was named in.
    giveToOwnerOf(dirname(realpathSync(file)), descriptor);
    closeSync(descriptor);
  }
  const stats = statSync(file);
  if (stats.isDirectory()) throw new PlantStoreError("unavailable", "it is a folder");
  // A pipe or a device is empty, as a file is that may be replaced.
  if (!stats.isFile()) throw new PlantStoreError("unavailable", "it is no plain file");
  if (!options.isToBeReplaced) checkOneName(stats);
  const real = realpathSync(file);
  if (isMountPoint(real)) {
    throw new PlantStoreError(
      "unavailable",
      "it is mounted by itself, so its log would lie elsewhere (mount its folder)",
    );
  }
  return real;
}

/**
 * Whether it lies in another folder and was mounted here, as a container can be given a file: its
 * log and its lock would lie with this name, not beside it, and go with the container. Linux tells;
 * where it does not, nothing is known.
 */
export function isMountPoint(file: string, mountsPath = "/proc/self/mountinfo"): boolean {
  try {
    const lines = readFileSync(mountsPath, "utf8").split("\n");
    return lines.some((line) => unquote(line.split(" ")[4] ?? "") === file);
  } catch {
    return false;
  }
}

/** Blanks and backslashes in it are written in octal. */
function unquote(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, digits) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/**
 * Fails if the file that was `stats` is being replaced. To be asked once it is open with its log,
 * before anything is written: if it still has one name then, the log is its own and stays with it.
 */
export function checkUnmoved(file: string, stats: Stats): void {
  // Not by `locate`: on macOS the runtime opens a file to find its real path, and closing it lets
  // go of the locks that SQLite has on it.
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) throw new PlantStoreError("unavailable", missing);
  checkOneName(found);
  if (found.dev === stats.dev && found.ino === stats.ino) return;
  throw new PlantStoreError("unavailable", "another file has just taken its place (try again)");
}

function checkOneName({ nlink }: Stats): void {
  if (nlink <= 1) return;
  throw new PlantStoreError("unavailable", "it has several names (hard links), so it is not safe");
}

/** With all above it that are missing. SQLite syncs the folder of its file, but none above it. */
function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) syncFolderOf(made);
}

export function explainOpening(path: string, cause: unknown): PlantStoreError {
  return new PlantStoreError("unavailable", `Cannot open ${path}: ${explain(cause)}.`, { cause });
}

function explain(error: unknown): string {
  const code = (error as { code?: string }).code ?? "";
  if (code === "EACCES" || code === "EPERM") return "permission is denied";
  if (code === "ELOOP") return "symbolic links beside it, or in a circle, are not followed";
  if (code === "ENOTDIR" || code === "EEXIST") {
    return "a part of its path is no folder, but a file or a link that leads nowhere";
  }
  if (code.startsWith("SQLITE_NOTADB")) return "it is not a database (choose another file)";
  if (code.startsWith("SQLITE_CORRUPT")) return damaged;
  if (code.startsWith("SQLITE_CANTOPEN")) return "it cannot be opened or made there";
  if (code.startsWith("SQLITE_READONLY")) return "it cannot be written";
  if (code.startsWith("SQLITE_IOERR")) return "the disk reports an error, or is full";
  return error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
}
