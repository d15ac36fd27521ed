/**
 * Writes the typed client as a package of its own, `plantstore-client`: `npm run build:client`, and
 * then `npm pack ./dist/plantstore-client`.
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json" with { type: "json" };

const root = join(import.meta.dir, "..");

export async function buildClientPackage(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // As it is written, so that stack traces and the code can be read. Pages can load it without a
  // bundler. After `npm ci --omit=dev` the compiler is missing; npx then downloads it, and nothing
  // else.
  const compiler = `typescript@${manifest.devDependencies.typescript}`;
  await Bun.$`npx --yes --package ${compiler} tsc -p client --outDir ${folder}`.cwd(root).quiet();
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

if (import.meta.main) {
  const folder = join(root, "dist/plantstore-client");
  await buildClientPackage(folder);
  process.stdout.write(`${folder}\n`);
}
