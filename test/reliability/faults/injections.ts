/** Which file operation fails, how, in which scene, and for how long. Each has a fixed number. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openSqlite } from "../../../src/storage/sqlite/engine.ts";
import { create } from "../../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import type { Failing } from "../interposed-io/interposed-io.ts";
import { tagOf } from "../ledger.ts";
import { type Image, readStore } from "../power-cuts/image.ts";

export interface Injection {
  readonly scene: Scene;
  readonly failure: Failure;
  /** Which of the operations that can fail in this way. */
  readonly nth: number;
  /** All later ones fail as well, until the disk recovers. */
  readonly isLasting: boolean;
  readonly program?: string;
}

export interface Failure {
  readonly name: string;
  rules(nth: number, isLasting: boolean): readonly Failing[];
}

export interface Scene {
  readonly name: string;
  /** What is on the disk before the start; absent if nothing is. */
  readonly files: Image | undefined;
  /** The names of the plants in it. */
  readonly plants: readonly string[];
  /** Absent on an empty disk: the first start creates one. */
  readonly token: string | undefined;
  /** Whether operations fail from the start of the process on, or only once it serves. */
  readonly isFromStart: boolean;
}

const changes: Failing["kinds"] = ["open", "write", "truncate", "sync", "make folder"];

export const failures: readonly Failure[] = [
  failing("EIO", [...changes, "close", "read", "unlink", "rename", "map"]),
  failing("ENOSPC", changes),
  failing("EMFILE", ["open"]),
  {
    name: "half written, then ENOSPC",
    rules: (nth, isLasting) => [
      { kinds: ["write"], error: "short", first: nth, last: nth },
      { kinds: ["write"], error: "ENOSPC", first: nth + 1, ...(!isLasting && { last: nth + 1 }) },
    ],
  },
];

export function failing(error: Failing["error"], kinds: Failing["kinds"]): Failure {
  return {
    name: error,
    rules: (nth, isLasting) => [{ kinds, error, first: nth, ...(!isLasting && { last: nth }) }],
  };
}

/** More than there are in any scene. */
export const callsMax = 500;
const scenesCount = 3;
export const injectionsCount = callsMax * scenesCount * failures.length * 2;

/** The injection with this number. */
export function findInjection(number: number, scenes: readonly Scene[]): Injection {
  let rest = number % injectionsCount;
  const take = (count: number) => {
    const taken = rest % count;
    rest = Math.floor(rest / count);
    return taken;
  };
  const scene = scenes[take(scenesCount)] as Scene;
  const failure = failures[take(failures.length)] as Failure;
  const isLasting = take(2) === 1;
  return { scene, failure, isLasting, nth: rest + 1 };
}

const walHeaderBytes = 32;
const frameBytes = 24 + 4_096;
/** SQLite checkpoints at 1,000 frames; a few more writes lead there. */
const nearlyFull = 985;

export async function makeScenes(): Promise<readonly Scene[]> {
  const empty = { files: undefined, plants: [], token: undefined };
  return [
    { name: "first start", ...empty, isFromStart: true },
    { name: "start with a WAL", ...(await makeStore(20)), isFromStart: true },
    { name: "checkpoint", ...(await makeStore(nearlyFull)), isFromStart: false },
  ];
}

/** As a killed process leaves it, with so many frames in its WAL. */
async function makeStore(frames: number): Promise<Pick<Scene, "files" | "plants" | "token">> {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: false });
  const { token } = await issueToken(storage, { user: "gardener" }, Date.now());
  const plants: string[] = [];
  while (statSync(`${path}-wal`).size < walHeaderBytes + frames * frameBytes) {
    const name = `earlier ${plants.length} ${"🌿".repeat(150)}`;
    await storage.apply([create({ garden: "gardener", name, tag: tagOf(name) })]);
    plants.push(name);
  }
  const files = readStore(path);
  await storage.close();
  return { files, plants, token };
}
