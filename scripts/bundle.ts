/**
 * Bundles the sources into dist/service/, three files with their bytecode, from which the program
 * starts in half the time. npm runs it (`prepare`) after an install in a clone and before it packs.
 * `bin/start.ts` uses the bundle only while the sources are those that it was made of.
 */
import { renameSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import type { BuildConfig, BunPlugin } from "bun";
import { type BuiltFrom, hashFiles } from "../bin/start.ts";

const root = join(import.meta.dir, "..");
const source = join(root, "src");

/** What the bundle and the single executable have in common. */
export const program = {
  // The threads are programs of their own, found by the name of their file.
  entrypoints: ["main.ts", "server/thread.ts", "storage/sqlite/worker.ts"].map((path) =>
    join(source, path),
  ),
  root: source,
  naming: { entry: "[name].ts" },
  target: "bun",
  bytecode: true,
} satisfies Partial<BuildConfig>;

export async function bundle(target = join(root, "dist/service")): Promise<void> {
  // Beside it, so that the bundle appears there at once and whole.
  const folder = `${target}-${process.pid}`;
  const inputs = new Set([join(root, "package.json")]);
  try {
    await Bun.build({
      ...program,
      // Without an executable around it, bytecode needs CommonJS.
      format: "cjs",
      // The bundler would put in the folders of the sources on this machine.
      define: { "import.meta.dir": "module.path" },
      outdir: folder,
      // Packages of pg's own may be updated where it is installed; npm updates all others only with
      // a new package.json.
      external: ["pg"],
      plugins: [leavePages(target), noteInputs(inputs)],
    });
    const files = [...inputs].map((path) => relative(root, path)).toSorted();
    const builtFrom: BuiltFrom = {
      runtime: Bun.revision,
      files,
      hash: hashFiles(root, files),
    };
    await Bun.write(join(folder, "built-from.json"), JSON.stringify(builtFrom));
    rmSync(target, { recursive: true, force: true });
    renameSync(folder, target);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The pages are made from their own sources, on the first request. */
function leavePages(target: string): BunPlugin {
  const path = relative(target, join(source, "http/page-sources.ts"));
  return {
    name: "pages",
    setup(bundler) {
      bundler.onResolve({ filter: /\/page-sources\.ts$/ }, () => ({ path, external: true }));
    },
  };
}

function noteInputs(inputs: Set<string>): BunPlugin {
  return {
    name: "inputs",
    setup(bundler) {
      bundler.onLoad({ filter: /[/\\]src[/\\]/ }, ({ path }) => {
        if (path.startsWith(`${source}/`)) inputs.add(path);
        return undefined;
      });
    },
  };
}

if (import.meta.main) await bundle();
