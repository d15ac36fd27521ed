/** A folder for one test, removed when it ends. */
import {
  accessSync,
  appendFileSync,
  constants,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function makeTemporaryFolder(parent = tmpdir()): {
  path: string;
  [Symbol.dispose](): void;
} {
  const path = mkdtempSync(join(parent, "plantstore-"));
  return {
    path,
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Several times as much as all tests store at once. */
const roomBytes = 4 * 2 ** 30;

/** Where files are made and removed fastest: in memory, if there is room, and programs can run. */
export function fastestParent(): string {
  const memory = "/dev/shm";
  try {
    accessSync(memory, constants.W_OK);
    const { bavail, bsize } = statfsSync(memory);
    const forbidsPrograms = / \/dev\/shm \S+ \S*\bnoexec\b/.test(
      readFileSync("/proc/mounts", "utf8"),
    );
    return bavail * bsize > roomBytes && !forbidsPrograms ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** Makes the file if it is missing. */
export function touch(path: string): string {
  appendFileSync(path, "");
  return path;
}
