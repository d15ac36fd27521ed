/** The temporary directory of a run: all data of all contenders, removed at the end. */
import { mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const memoryFileSystemType = 0x01021994;

export class Workspace {
  readonly path = mkdtempSync(join(tmpdir(), "plantstore-bench-"));
  #count = 0;

  /** In a file system that keeps its files in memory, a sync costs nothing and shows nothing. */
  get isInMemory(): boolean {
    return statfsSync(this.path).type === memoryFileSystemType;
  }

  makeDirectory(name: string): string {
    this.#count += 1;
    const directory = join(this.path, `${this.#count}-${name}`);
    mkdirSync(directory);
    return directory;
  }

  remove(directory = this.path): void {
    rmSync(directory, { recursive: true, force: true });
  }
}
