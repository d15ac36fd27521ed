/** What an installation for production brings: little, and nothing that is never loaded. */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..");
const bytesMax = 10_000_000;

test("npm ci --omit=dev installs Bun and less than 10 MB beside it", () => {
  const lock: { packages: Record<string, { dev?: boolean }> } = JSON.parse(
    readFileSync(join(root, "package-lock.json"), "utf8"),
  );
  const production = Object.keys(lock.packages).filter(
    (path) => /^node_modules\/(?!bun$|@oven\/)/.test(path) && !lock.packages[path]?.dev,
  );
  expect(production).toContain("node_modules/valibot");
  const bytes = production.reduce((sum, path) => sum + sizeOf(join(root, path)), 0);
  expect(bytes).toBeLessThan(bytesMax);
});

test("the API reference's renderer is the pinned package's own file", () => {
  const installed = join(root, "node_modules/@scalar/fastify-api-reference");
  const vendored = join(root, "src/console/vendor");
  const read = (folder: string, name: string) => readFileSync(join(folder, name));
  expect(
    read(vendored, "scalar.js").equals(read(installed, "dist/js/standalone.js")) &&
      read(vendored, "scalar-license.txt").equals(read(installed, "LICENSE")),
  ).toBe(true);
});

/** 0 for a package of another platform, which isn't installed. */
function sizeOf(folder: string): number {
  if (!existsSync(folder)) return 0;
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.reduce(
    (sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size,
    0,
  );
}
