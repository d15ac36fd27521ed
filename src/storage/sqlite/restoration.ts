/** Puts a file in the place of a store that nobody serves, and keeps the older one beside it. */
import { existsSync, linkSync, renameSync, rmSync, statSync } from "node:fs";
import { PlantStoreError } from "../../domain/errors.ts";
import type { Restoration, Use } from "../backup.ts";
import { renameDurably, syncFolderOf } from "../durable-file.ts";
import { lockForServing } from "./lock.ts";
import { explainOpening, locate } from "./opening.ts";
import { giveFileToOwnerOf } from "./ownership.ts";

/** Part of the data while they exist, and applied to whatever lies beside them. */
const logs = ["-wal", "-journal"];
const sharedMemory = "-shm";

export async function restoreSqlite<Result>(
  path: string,
  mayReplace: boolean,
  use: Use<Restoration, Result>,
): Promise<Result> {
  const isNew = !existsSync(path);
  const { file, lock } = claim(path);
  const unpackedPath = `${file}.${crypto.randomUUID()}.partial`;
  try {
    if (statSync(file).size > 0 && !mayReplace) {
      throw new PlantStoreError(
        "conflict",
        `${path} is there already. With --force it is kept under another name, and replaced.`,
      );
    }
    return await use({
      unpackedPath,
      async fill() {
        try {
          giveFileToOwnerOf(file, unpackedPath);
          const keptPath = setAside(file);
          renameDurably(unpackedPath, file);
          return keptPath;
        } catch (error) {
          throw explainOpening(path, error);
        }
      },
    });
  } finally {
    for (const suffix of ["", ...logs, sharedMemory])
      rmSync(unpackedPath + suffix, { force: true });
    // An empty file would be served as an empty store.
    if (isNew && statSync(file).size === 0) rmSync(file);
    lock.close();
  }
}

function claim(path: string) {
  try {
    const file = locate(path, { isServing: false });
    // Nobody starts to serve it meanwhile.
    return { file, lock: lockForServing(file) };
  } catch (error) {
    throw explainOpening(path, error);
  }
}

/**
 * The older file keeps its name until the new one takes it, and has both names until then: no
 * service opens a file with two names, so one that was cut off from its log is not served by
 * mistake.
 */
function setAside(file: string): string | undefined {
  const keptPath = `${file}.before-${new Date().toISOString().replaceAll(":", "-")}`;
  const hasStore = statSync(file).size > 0;
  if (hasStore) linkSync(file, keptPath);
  for (const log of logs) if (existsSync(file + log)) renameSync(file + log, keptPath + log);
  rmSync(file + sharedMemory, { force: true });
  syncFolderOf(file);
  return hasStore ? keptPath : undefined;
}
