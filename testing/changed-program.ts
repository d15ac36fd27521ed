/** A copy of the program with a few changes in its text, such as a deliberately broken one. */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "./temporary-folder.ts";

/** The file is below src/, and has the text exactly once. */
export type Edit = readonly [file: string, text: string, by: string];

const root = join(import.meta.dir, "..");

/** Returns what `startService` takes. */
export function changeProgram(...edits: readonly Edit[]) {
  const folder = makeTemporaryFolder();
  const source = join(folder.path, "src");
  for (const name of ["src", "client", "console"]) {
    cpSync(join(root, name), join(folder.path, name), { recursive: true });
  }
  cpSync(join(root, "package.json"), join(folder.path, "package.json"));
  symlinkSync(join(root, "node_modules"), join(folder.path, "node_modules"));
  for (const [file, text, by] of edits) {
    const parts = readFileSync(join(source, file), "utf8").split(text);
    if (parts.length !== 2) throw new Error(`"${text}" is not in ${file} once.`);
    writeFileSync(join(source, file), parts.join(by));
  }
  return {
    program: join(source, "main.ts"),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}
