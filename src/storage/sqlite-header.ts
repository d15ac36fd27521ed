/**
 * What the first bytes of a SQLite file say (https://www.sqlite.org/fileformat2.html), without
 * opening it: the rest may be damaged, and closing it would move its log into it.
 */
import { closeSync, openSync, readSync } from "node:fs";

export const headerBytes = 100;
const magic = "SQLite format 3\0";
const pageBytesAt = 16;
const pagesAt = 28;
const schemaCookieAt = 40;
const applicationIdAt = 68;

/** Whether a file that starts with these bytes is a SQLite file, whichever program made it. */
export function isDatabase(start: Buffer): boolean {
  return start.length >= headerBytes && start.toString("latin1").startsWith(magic);
}

/** Whether it is ours. */
export function isStore(start: Buffer): boolean {
  return isDatabase(start) && start.toString("latin1", applicationIdAt).startsWith("PLNT");
}

/** Whether nothing is stored in it yet, or only in its log. */
export function isUnused(start: Buffer): boolean {
  const isZero = (at: number) => start.readUInt32BE(at) === 0;
  return isDatabase(start) && isZero(schemaCookieAt) && isZero(applicationIdAt);
}

/** How long the file is, without its log. */
export function databaseBytes(start: Buffer): number {
  const pageBytes = start.readUInt16BE(pageBytesAt);
  return start.readUInt32BE(pagesAt) * (pageBytes === 1 ? 2 ** 16 : pageBytes);
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
