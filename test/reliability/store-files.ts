/** Reads and writes the files of a SQLite store. */
import { readFileSync, writeFileSync } from "node:fs";

/** A database and its WAL, which is empty after a checkpoint. */
export interface StoreFiles {
  readonly database: Uint8Array;
  readonly log: Uint8Array;
}

export function readStore(path: string): StoreFiles {
  return { database: readIfThere(path), log: readIfThere(`${path}-wal`) };
}

export function writeStore(path: string, { database, log }: StoreFiles): void {
  writeFileSync(path, database);
  if (log.length > 0) writeFileSync(`${path}-wal`, log);
}

function readIfThere(path: string): Uint8Array {
  try {
    return new Uint8Array(readFileSync(path));
  } catch {
    return new Uint8Array();
  }
}
