/** Which file operation fails, how, in which scene, and for how long. Each has a fixed number. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openSqlite } from "../../../src/storage/sqlite/engine.ts";
import { create } from "../../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import type { Failing } from "../interposed-io/interposed-io.ts";
import { tagOf } from "../ledger.ts";
import { type Image, readImage } from "../power-cuts/disk.ts";
import { databasePath } from "../power-cuts/examination.ts";

export interface Case {
  readonly scene: Scene;
  readonly failure: Pick<Failing, "kinds" | "error" | "isHalved">;
  /** All later operations fail as well, until the disk recovers. */
  readonly isLasting: boolean;
}

export interface Injection extends Case {
  /** Which of the operations that can fail in this way. */
  readonly nth: number;
  readonly program?: string;
}

export interface Scene {
  readonly name: string;
  /** What is on the disk before the start. */
  readonly files: Image;
  /** The names of the plants in it. */
  readonly plants: readonly string[];
  /** Absent on an empty disk: the first start creates one. */
  readonly token?: string;
  /** Whether operations fail from the start of the process on, or only once it serves. */
  readonly isFromStart: boolean;
}

export const changes: Failing["kinds"] = ["open", "write", "truncate", "sync", "make folder"];
const failures: readonly Case["failure"][] = [
  { kinds: [...changes, "read", "unlink", "rename"], error: "EIO" },
  { kinds: changes, error: "ENOSPC" },
  { kinds: ["write"], error: "ENOSPC", isHalved: true },
  { kinds: ["open"], error: "EMFILE" },
];

/** More than there are in any scene. */
export const callsMax = 500;
const walHeaderBytes = 32;
const frameBytes = 24 + 4_096;
/** SQLite checkpoints at 1,000 frames; a few more writes lead there. */
const nearlyFull = 985;

export async function makeCases(): Promise<readonly Case[]> {
  const scenes: readonly Scene[] = [
    { name: "first start", files: new Map(), plants: [], isFromStart: true },
    { name: "start with a WAL", ...(await makeStore(20)), isFromStart: true },
    { name: "checkpoint", ...(await makeStore(nearlyFull)), isFromStart: false },
  ];
  return scenes.flatMap((scene) =>
    failures
      // No start runs out of descriptors, and SQLite goes on if it can't open a folder to sync it.
      .filter(({ error }) => error !== "EMFILE" || !scene.isFromStart)
      .flatMap((failure) => [false, true].map((isLasting) => ({ scene, failure, isLasting }))),
  );
}

/** As a killed process leaves it, with so many frames in its WAL. */
async function makeStore(frames: number): Promise<Pick<Scene, "files" | "plants" | "token">> {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, databasePath);
  const storage = openSqlite(path, { isServing: false });
  const { token } = await issueToken(storage, { user: "gardener" }, Date.now());
  const plants: string[] = [];
  while (statSync(`${path}-wal`).size < walHeaderBytes + frames * frameBytes) {
    const name = `earlier ${plants.length} ${"🌿".repeat(150)}`;
    await storage.apply([create({ garden: "gardener", name, tag: tagOf(name) })]);
    plants.push(name);
  }
  const files = readImage(folder.path);
  await storage.close();
  return { files, plants, token };
}
