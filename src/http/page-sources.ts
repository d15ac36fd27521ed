/**
 * The sources of the web pages, bundled from `console/`. A build of the single executable replaces
 * this module with one that holds the finished texts.
 */
import { join } from "node:path";

/** A page and what it loads: `{script}` in the page stands for the script's address. */
export interface PageSource {
  readonly page: string;
  readonly style: string;
  readonly script: string;
  /** A third-party script, loaded as it is. */
  readonly library?: string;
}

const folder = join(import.meta.dir, "../../console");

export async function readConsole(): Promise<PageSource> {
  return {
    page: await Bun.file(join(folder, "console.html")).text(),
    style: await bundle("console.css"),
    script: await bundle("console.ts"),
  };
}

export async function readReference(): Promise<PageSource> {
  return {
    page: await Bun.file(join(folder, "reference.html")).text(),
    style: await bundle("reference.css"),
    script: await bundle("reference.ts"),
    library: await Bun.file(join(folder, "vendor/scalar.js")).text(),
  };
}

/** One minified file with everything it imports. */
async function bundle(name: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(folder, name)],
    target: "browser",
    minify: true,
  });
  const [output] = outputs;
  if (!output) throw new Error(`${name} produced no bundle.`);
  return output.text();
}
