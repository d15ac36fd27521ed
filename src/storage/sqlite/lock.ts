/**
 * Lets one process at a time serve a file. Command-line tools do not take it and may run beside.
 */
import { Database, SQLiteError } from "bun:sqlite";
import { closeSync, constants, openSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import { giveToOwnerOf } from "./ownership.ts";

/** A link there, set by whoever owns the folder, could lead root to another's file. */
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
const appendUnlinked = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW;

/**
 * An exclusive transaction on a small database beside the file: the kernel lets go of its lock with
 * the process, however that ends, so no stale lock is ever left behind.
 */
export function lockForServing(path: string): Database {
  const lockPath = `${path}-serving`;
  const descriptor = openSync(lockPath, appendUnlinked, 0o600);
  giveToOwnerOf(path, descriptor);
  closeSync(descriptor);
  const lock = new Database(lockPath, { create: false, readwrite: true });
  try {
    lock.run("PRAGMA busy_timeout = 0");
    // Nothing is ever written, so no journal needs to lie beside it.
    lock.run("PRAGMA journal_mode = MEMORY");
    lock.run("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    if (error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY")) {
      throw new PlantStoreError(
        "unavailable",
        "another process is serving it already (stop that one, or choose another file)",
      );
    }
    throw error;
  }
}
