/** The files of a SQLite store as bytes, to be kept, damaged, compared and put elsewhere. */
import { readFileSync, writeFileSync } from "node:fs";

/** A database and the log beside it, which is empty once it was folded into the database. */
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
