/**
 * The sources of the web pages, bundled from `console/`. A build of the single executable replaces
 * this module with one that holds the finished texts.
 */
import { basename, join } from "node:path";

/** A page and what it loads: `{script}` in the page stands for the script's address. */
export interface PageSource {
  readonly page: string;
  readonly style: string;
  readonly script: string;
  /** Scripts that the script loads, by file name. */
  readonly chunks?: Readonly<Record<string, string>>;
  /** A third-party script, loaded as it is. */
  readonly library?: string;
}

const folder = join(import.meta.dir, "../../console");
const renderer = "swagger-ui-dist/swagger-ui-bundle.js";

export async function readConsole(): Promise<PageSource> {
  const [script, ...chunks] = await build("console.tsx");
  return {
    page: await Bun.file(join(folder, "console.html")).text(),
    style: await bundle("console.css"),
    script: script.text,
    chunks: Object.fromEntries(chunks.map(({ name, text }) => [name, text])),
  };
}

export async function readReference(): Promise<PageSource> {
  return {
    page: await Bun.file(join(folder, "reference.html")).text(),
    style: await bundle("reference.css"),
    script: await bundle("reference.ts"),
    library: await Bun.file(new URL(import.meta.resolve(renderer))).text(),
  };
}

/** One minified file with everything it imports. */
async function bundle(name: string): Promise<string> {
  return (await build(name))[0].text;
}

interface BuiltFile {
  readonly name: string;
  readonly text: string;
}

/** The file itself, and then the ones that it shares code with or loads later. */
async function build(name: string): Promise<[BuiltFile, ...BuiltFile[]]> {
  const { outputs } = await Bun.build({
    entrypoints: [join(folder, name)],
    target: "browser",
    minify: true,
    splitting: true,
    naming: { chunk: "console-[hash].[ext]" },
    jsx: { runtime: "automatic", importSource: "preact", development: false },
  });
  const files = await Promise.all(
    outputs.map(async (output) => ({ name: basename(output.path), text: await output.text() })),
  );
  const [first, ...chunks] = files;
  if (!first) throw new Error(`${name} produced no bundle.`);
  return [first, ...chunks];
}
