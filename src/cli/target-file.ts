/** The file that a command is to write: where it lies, and whether it may be replaced at all. */
import {
  closeSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { dirname, isAbsolute } from "node:path";
import { fileError } from "./cli-error.ts";

/**
 * The file itself, behind any symbolic link, also where there is none yet: else the link would be
 * replaced, and what it led to stay away. Throws a `CliError` that names the path.
 */
export function locateTarget(path: string): string {
  try {
    return follow(path);
  } catch (error) {
    throw fileError("write", path, error);
  }
}

/** Links in a circle fail at once, so that those that are followed one by one have an end. */
function follow(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found) return found.isFile() ? realpathSync(path) : path;
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path;
  const link = readlinkSync(path);
  // Not made shorter: what `..` leads to is known only to the system.
  return follow(isAbsolute(link) ? link : `${dirname(path)}/${link}`);
}

const databaseStart = Buffer.from("SQLite format 3\0");

/** Whether it is a store, or a backup of one. What cannot be read is taken for none. */
export function isDatabase(path: string): boolean {
  const start = Buffer.alloc(databaseStart.length);
  try {
    const descriptor = openSync(path, "r");
    try {
      readSync(descriptor, start, 0, start.length, 0);
    } finally {
      closeSync(descriptor);
    }
  } catch {}
  return start.equals(databaseStart);
}
