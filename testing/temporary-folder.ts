/** A folder for one test, removed when it ends. */
import { accessSync, appendFileSync, constants, mkdtempSync, rmSync } from "node:fs";
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

/** Where files are made and removed fastest: in memory, if the machine has a place for that. */
export function fastestParent(): string {
  try {
    accessSync("/dev/shm", constants.W_OK);
    return "/dev/shm";
  } catch {
    return tmpdir();
  }
}

/** Makes the file if it is missing. */
export function touch(path: string): string {
  appendFileSync(path, "");
  return path;
}
