/** Files that survive a power cut. */
import { closeSync, fsyncSync, linkSync, lstatSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { PlantStoreError } from "../domain/errors.ts";

/** The contents must have been synced before. */
function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  syncFolderOf(to);
}

/** Fills a file, by its descriptor or its path. */
type WriteFile<Result> = (descriptor: number, path: string) => Promise<Result>;

/**
 * Calls `write` to fill a new file, and renames it to `target` once it's complete and durable. Only
 * its owner can read it, as with a database.
 */
export function replaceDurably<Result>(target: string, write: WriteFile<Result>): Promise<Result> {
  return writeDurably(target, write, renameDurably);
}

/** The same, but never replaces a file, not even one that appears while this one is written. */
export async function createDurably<Result>(
  target: string,
  write: WriteFile<Result>,
): Promise<Result> {
  refuseExisting(target);
  return writeDurably(target, write, linkDurably);
}

function linkDurably(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if ((error as { code?: string }).code === "EEXIST") throw existsAlready(to);
    // Some file systems have no links, such as exFAT. There, a moment is left for others.
    refuseExisting(to);
    renameSync(from, to);
  }
  removeLeftover(from);
  syncFolderOf(to);
}

/** A link that leads nowhere exists, too. */
function refuseExisting(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })) throw existsAlready(path);
}

function existsAlready(path: string): PlantStoreError {
  return new PlantStoreError("conflict", `${path} exists already.`);
}

async function writeDurably<Result>(
  target: string,
  write: WriteFile<Result>,
  giveName: (from: string, to: string) => void,
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
    giveName(partial, target);
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
