/** Where a fault can strike: a first start, a start that finds a log, a checkpoint under way. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openSqlite } from "../../../src/storage/sqlite/engine.ts";
import { create } from "../../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { readStore, type StoreFiles } from "../store-files.ts";

export interface Scene {
  readonly name: string;
  /** What lies on the disk before; absent if nothing does. */
  readonly files: StoreFiles | undefined;
  /** The names of the plants in it. */
  readonly plants: readonly string[];
  /** Absent on an empty disk: the first start makes one. */
  readonly token: string | undefined;
  /** Whether calls fail from the start of the process on, or only once it serves. */
  readonly isFromStart: boolean;
}

const logHeaderBytes = 32;
const frameBytes = 24 + 4_096;
/** SQLite folds its log into the file at 1,000 frames; a few more writes lead there. */
const nearlyFull = 985;

export async function makeScenes(): Promise<readonly Scene[]> {
  return [
    {
      name: "first start",
      files: undefined,
      plants: [],
      token: undefined,
      isFromStart: true,
    },
    { name: "start on a log", ...(await makeStore(20)), isFromStart: true },
    { name: "checkpoint", ...(await makeStore(nearlyFull)), isFromStart: false },
  ];
}

/** As a killed process leaves it, with so many frames in its log. */
async function makeStore(frames: number): Promise<Pick<Scene, "files" | "plants" | "token">> {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: false });
  const { token } = await issueToken(storage, { user: "gardener" }, Date.now());
  const plants: string[] = [];
  while (statSync(`${path}-wal`).size < logHeaderBytes + frames * frameBytes) {
    const name = `earlier ${plants.length} ${"🌿".repeat(150)}`;
    await storage.apply([create({ garden: "gardener", name })]);
    plants.push(name);
  }
  const files = readStore(path);
  await storage.close();
  return { files, plants, token };
}
