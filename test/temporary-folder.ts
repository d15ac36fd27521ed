/** A folder for one test, gone when it ends. */
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function makeTemporaryFolder(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "plantstore-"));
  return {
    path,
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

/** Makes the file if it is missing. */
export function touch(path: string): string {
  appendFileSync(path, "");
  return path;
}

export function makeEmptyFile(folder: string): string {
  return touch(join(folder, "plants.db"));
}
