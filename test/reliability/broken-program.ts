/** A copy of the program with a fault put into its source, to see that a suite finds it out. */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../temporary-folder.ts";

const root = join(import.meta.dir, "../..");

export interface Fault {
  /** In src/. */
  readonly file: string;
  readonly text: string;
  readonly instead: string;
}

/** Where its main file is; gone when the test ends. Fails if the text is not there to be replaced. */
export function breakProgram(...faults: readonly Fault[]): {
  readonly main: string;
  [Symbol.dispose](): void;
} {
  const folder = makeTemporaryFolder();
  cpSync(join(root, "src"), join(folder.path, "src"), { recursive: true });
  cpSync(join(root, "package.json"), join(folder.path, "package.json"));
  symlinkSync(join(root, "node_modules"), join(folder.path, "node_modules"));
  for (const { file, text, instead } of faults) {
    const path = join(folder.path, "src", file);
    const source = readFileSync(path, "utf8");
    if (!source.includes(text)) throw new Error(`${file} holds no ${text}`);
    writeFileSync(path, source.replace(text, instead));
  }
  return { main: join(folder.path, "src/main.ts"), [Symbol.dispose]: folder[Symbol.dispose] };
}
