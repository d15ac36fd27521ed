/**
 * What the first bytes of a SQLite file say (https://www.sqlite.org/fileformat2.html), without
 * opening it: the rest may be damaged, and closing it would move its log into it.
 */
import { closeSync, openSync, readSync } from "node:fs";

export const headerBytes = 100;
const magic = "SQLite format 3\0";
const schemaCookieAt = 40;
const applicationIdAt = 68;

/** Whether it is a SQLite file, of whatever program. */
export function isDatabase(path: string): boolean {
  return isSqlite(readBytes(path, 0, headerBytes));
}

/** Whether a file that starts with these bytes is ours. */
export function isStore(start: Buffer): boolean {
  return isSqlite(start) && start.toString("latin1", applicationIdAt).startsWith("PLNT");
}

/** Whether nothing is stored in it yet, or only in its log. */
export function isUnused(start: Buffer): boolean {
  const isZero = (at: number) => start.readUInt32BE(at) === 0;
  return isSqlite(start) && isZero(schemaCookieAt) && isZero(applicationIdAt);
}

function isSqlite(start: Buffer): boolean {
  return start.length >= headerBytes && start.toString("latin1").startsWith(magic);
}

export function readBytes(path: string, position: number, count: number): Buffer {
  const descriptor = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(count);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, count, position));
  } finally {
    closeSync(descriptor);
  }
}
