/**
 * The texts of the pages: the console is bundled from its source, the API reference's renderer
 * comes from its package. All of them are plain text, so a build can put texts made beforehand in
 * this place.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A page, and what it loads: `{script}` in the page stands for the address of the script. */
export interface PageSource {
  readonly page: string;
  readonly style: string;
  readonly script: string;
  /** A script of another maker, loaded beside the page's own. */
  readonly library?: string;
}

const folder = join(import.meta.dir, "../console");
/** Found when this is loaded: what is first looked for without a descriptor left is never found. */
const renderer = new URL("js/standalone.js", import.meta.resolve("@scalar/fastify-api-reference"));

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
    library: await Bun.file(fileURLToPath(renderer)).text(),
  };
}

/**
 * Has the bundler, which all threads share, open what it keeps open. Where no descriptor is left
 * for that it ends the process.
 */
export async function prepareSources(): Promise<void> {
  if (Bun.isMainThread) await Bun.build({ entrypoints: ["/empty.js"], files: { "/empty.js": "" } });
}

/** The file with all that it imports, small enough to send. */
async function bundle(name: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(folder, name)],
    target: "browser",
    minify: true,
  });
  const [output] = outputs;
  if (!output) throw new Error(`${name} was bundled into nothing.`);
  return output.text();
}
