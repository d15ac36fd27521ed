/** Files that survive a power cut. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";

/** The contents must have been synced before. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  syncFolderOf(to);
}

/**
 * Calls `write` to fill a new file, and renames it to `target` once it's complete and durable. Only
 * its owner can read it, as with a database.
 */
export async function replaceDurably<Result>(
  target: string,
  write: (descriptor: number, path: string) => Promise<Result>,
): Promise<Result> {
  const partial = `${target}.${crypto.randomUUID()}.partial`;
  const descriptor = openSync(partial, "wx", 0o600);
  let result: Result;
  try {
    try {
      result = await write(descriptor, partial);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameDurably(partial, target);
    return result;
  } finally {
    removeLeftover(partial);
  }
}

/** A file's name survives once its folder is synced. Windows can't do that, and needn't. */
export function syncFolderOf(path: string): void {
  if (process.platform !== "win32") sync(dirname(path), "r");
}

export function syncFile(path: string): void {
  sync(path, "r+");
}

function sync(path: string, flags: string): void {
  const descriptor = openSync(path, flags);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** If a temporary file can't be removed, it takes up space and does no other harm. */
export function removeLeftover(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}
