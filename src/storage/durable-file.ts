/** Names of files that survive a power cut. It does not sync what is in them. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";

export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  syncFolderOf(to);
}

/**
 * A name lasts once the folder that holds it is synced. Windows has no such thing, and needs none.
 */
export function syncFolderOf(path: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** What was begun and is not needed: where it cannot be removed, it takes room and no more. */
export function removeLeftover(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}
