/**
 * Writes the typed client as a package of its own, `plantstore-client`: `npm run build:client`, and
 * then `npm pack ./dist/plantstore-client`.
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import manifest from "../package.json" with { type: "json" };

const root = join(import.meta.dir, "..");

export async function buildClientPackage(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await bundleClient(folder);
  // After `npm ci --omit=dev` the compiler is missing; npx then downloads it, and nothing else.
  const compiler = `typescript@${manifest.devDependencies.typescript}`;
  const types = ["--emitDeclarationOnly", "--outDir", folder];
  await Bun.$`npx --yes --package ${compiler} tsc -p client ${types}`.cwd(root).quiet();
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  copyFileSync(join(root, "docs/client.md"), join(folder, "README.md"));
  const { version, license, engines } = manifest;
  const own = {
    name: "plantstore-client",
    version,
    description: "A typed client of the Plant Store, for browsers, Node and Bun.",
    license,
    type: "module",
    // For resolvers older than `exports`.
    main: "./plant-store.js",
    types: "./plant-store.d.ts",
    exports: { types: "./plant-store.d.ts", default: "./plant-store.js" },
    sideEffects: false,
    engines,
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(own, null, 2)}\n`);
}

/** One minified file, which pages can also load without a bundler. */
async function bundleClient(folder: string): Promise<void> {
  await Bun.build({
    entrypoints: [join(root, "client/plant-store.ts")],
    outdir: folder,
    target: "browser",
    minify: true,
    sourcemap: "linked",
  });
  const path = join(folder, "plant-store.js.map");
  const map = await Bun.file(path).json();
  // The sources are in the map; where they were on this machine is of no use to anybody.
  map.sources = map.sources.map((source: string) => basename(source));
  await Bun.write(path, JSON.stringify(map));
}

if (import.meta.main) {
  const folder = join(root, "dist/plantstore-client");
  await buildClientPackage(folder);
  process.stdout.write(`${folder}\n`);
}
