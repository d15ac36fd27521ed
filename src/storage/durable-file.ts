/** Files that survive a power cut, and temporary ones. */
import { closeSync, fsyncSync, mkdtempSync, openSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PlantStoreError } from "../domain/errors.ts";

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
  write: (descriptor: number) => Promise<Result>,
): Promise<Result> {
  const partial = `${target}.${crypto.randomUUID()}.partial`;
  const descriptor = openSync(partial, "wx", 0o600);
  let result: Result;
  try {
    try {
      result = await write(descriptor);
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

/** For a store on its way to somewhere else. */
export function makeTemporaryFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), "plantstore-"));
  } catch (cause) {
    const message = `Cannot write to ${tmpdir()}: set TMPDIR to a folder that can be written.`;
    throw new PlantStoreError("unavailable", message, { cause });
  }
}
