/**
 * `npm run build -- [PLATFORM …]`: the service, its pages and the command line as one executable in
 * dist/, for this machine or for others. It needs neither Node nor Bun where it runs.
 */
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { BunPlugin } from "bun";
import manifest from "../package.json" with { type: "json" };
import { readConsole, readReference } from "../src/http/page-sources.ts";

const root = join(import.meta.dir, "..");
const source = join(root, "src");
/** The threads are programs of their own, found by the name of their file. */
const entrypoints = ["main.ts", "process/worker-thread.ts", "storage/sqlite/worker.ts"].map(
  (path) => join(source, path),
);

/** By the name of the platform, the npm package with its runtime. */
const runtimes = {
  "linux-x64": "@oven/bun-linux-x64",
  "linux-arm64": "@oven/bun-linux-aarch64",
  "darwin-x64": "@oven/bun-darwin-x64",
  "darwin-arm64": "@oven/bun-darwin-aarch64",
} as const;

type Platform = keyof typeof runtimes;

const ownPlatform = `${process.platform}-${process.arch}`;

/** Builds for one platform, into one file. */
export async function build(outfile: string, platform: string = ownPlatform): Promise<void> {
  if (!isPlatform(platform)) {
    throw new Error(`${platform} is none of ${Object.keys(runtimes).join(", ")}.`);
  }
  mkdirSync(dirname(outfile), { recursive: true });
  // Beside the file, so that the file appears there at once and whole.
  const folder = mkdtempSync(join(dirname(outfile), ".build-"));
  const built = join(folder, basename(outfile));
  try {
    await Bun.build({
      entrypoints,
      root: source,
      naming: { entry: "[name].ts" },
      target: "bun",
      format: "esm",
      bytecode: true,
      minify: true,
      sourcemap: "inline",
      plugins: [await bringPages(folder)],
      compile: {
        outfile: built,
        target: `bun-${platform}`,
        // What lies in the folder where it is started is none of its business.
        autoloadDotenv: false,
        autoloadBunfig: false,
        ...(platform === ownPlatform
          ? {}
          : { executablePath: await fetchRuntime(platform, folder) }),
      },
    });
    renameSync(built, outfile);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function isPlatform(name: string): name is Platform {
  return name in runtimes;
}

/** The pages' texts are made now and read from inside the executable; nothing is bundled there. */
async function bringPages(folder: string): Promise<BunPlugin> {
  await Bun.write(join(folder, "console.json"), JSON.stringify(await readConsole()));
  await Bun.write(join(folder, "reference.json"), JSON.stringify(await readReference()));
  const contents = `
    import console from ${JSON.stringify(join(folder, "console.json"))} with { type: "file" };
    import reference from ${JSON.stringify(join(folder, "reference.json"))} with { type: "file" };
    export const readConsole = () => Bun.file(console).json();
    export const readReference = () => Bun.file(reference).json();
  `;
  return {
    name: "pages",
    setup(bundler) {
      bundler.onLoad({ filter: /[/\\]http[/\\]page-sources\.ts$/ }, () => ({
        contents,
        loader: "ts",
      }));
    },
  };
}

/** The runtime of another platform, in the version of this one, from the registry that npm uses. */
async function fetchRuntime(platform: Platform, folder: string): Promise<string> {
  const wanted = `${runtimes[platform]}@${manifest.dependencies.bun}`;
  const packed = await Bun.$`npm pack ${wanted} --silent --pack-destination ${folder}`.text();
  await Bun.$`tar -xzf ${join(folder, packed.trim())} -C ${folder}`;
  return join(folder, "package/bin/bun");
}

if (import.meta.main) {
  const platforms = process.argv.slice(2);
  const wanted = platforms.length > 0 ? platforms : [ownPlatform];
  for (const platform of wanted) {
    const name = platforms.length > 0 ? `plantstore-${platform}` : "plantstore";
    const outfile = join(root, "dist", name);
    await build(outfile, platform);
    const megabytes = (statSync(outfile).size / 1e6).toFixed(1);
    process.stdout.write(`dist/${basename(outfile)}: ${platform}, ${megabytes} MB\n`);
  }
}
