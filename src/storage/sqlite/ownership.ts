/**
 * What root makes beside the file of a service that runs as another user is that user's, as SQLite
 * does it.
 */
import { closeSync, constants, fchownSync, fstatSync, openSync, statSync } from "node:fs";

/**
 * Makes an open file that of whoever owns what is at `path`. Only root can, and where it cannot,
 * nothing is lost.
 */
export function giveToOwnerOf(path: string, descriptor: number): void {
  if (process.getuid?.() !== 0) return;
  const owner = statSync(path, { throwIfNoEntry: false });
  const own = fstatSync(descriptor);
  if (owner === undefined || (own.uid === owner.uid && own.gid === owner.gid)) return;
  // A file with a second name may be another one's, linked there by whoever owns the folder.
  if (own.nlink !== 1) return;
  try {
    fchownSync(descriptor, owner.uid, owner.gid);
  } catch (error) {
    // Root of a container without that right, which runs the service itself.
    if ((error as { code?: string }).code !== "EPERM") throw error;
  }
}

/** The same for a file that nobody has open: closing it would let go of SQLite's locks. */
export function giveFileToOwnerOf(path: string, file: string): void {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    giveToOwnerOf(path, descriptor);
  } finally {
    closeSync(descriptor);
  }
}
