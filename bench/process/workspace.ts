/** The temporary directory of a run: all data of all contenders, removed at the end. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const memoryFileSystemType = 0x01021994;

export class Workspace {
  readonly path = mkdtempSync(join(tmpdir(), "plantstore-bench-"));
  #count = 0;

  /** Whether files are kept in memory here, where a sync costs nothing and shows nothing. */
  get isInMemory(): boolean {
    return statfsSync(this.path).type === memoryFileSystemType;
  }

  makeDirectory(name: string): string {
    this.#count += 1;
    const directory = join(this.path, `${this.#count}-${name}`);
    mkdirSync(directory);
    return directory;
  }

  copyDirectory(source: string, name: string): string {
    const directory = this.makeDirectory(name);
    cpSync(source, directory, { recursive: true });
    return directory;
  }

  discard(directory: string): void {
    rmSync(directory, { recursive: true, force: true });
  }

  remove(): void {
    this.discard(this.path);
  }
}
