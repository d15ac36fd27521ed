/**
 * Starts the program: from its bundle (scripts/bundle.ts), if there is one of this runtime and of
 * the sources as they are now, else from the sources.
 */
import { readFileSync } from "node:fs";

/** What a bundle was made of. */
export interface BuiltFrom {
  /** Bytecode is of no use to another version. */
  readonly runtime: string;
  /** From the package's folder. */
  readonly files: readonly string[];
  readonly hash: string;
}

export function hashFiles(folder: string, files: readonly string[]): string {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const file of files) hasher.update(`\n${file}\n`).update(readFileSync(`${folder}/${file}`));
  return hasher.digest("hex");
}

function isBundleCurrent(folder: string): boolean {
  try {
    const text = readFileSync(`${folder}/dist/service/built-from.json`, "utf8");
    const { runtime, files, hash } = JSON.parse(text) as BuiltFrom;
    return runtime === Bun.revision && hashFiles(folder, files) === hash;
  } catch {
    // There is no bundle, or a source is gone.
    return false;
  }
}

if (import.meta.main) {
  const folder = import.meta.dir.slice(0, import.meta.dir.lastIndexOf("/"));
  import(`${folder}/${isBundleCurrent(folder) ? "dist/service" : "src"}/main.ts`);
}
