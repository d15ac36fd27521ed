/** The client as a package of its own: what is in it, how large it is, and that Node can use it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import manifest from "../../package.json" with { type: "json" };
import { buildClientPackage } from "../../scripts/build-client.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

const folder = makeTemporaryFolder();
const home = join(folder.path, "node_modules/plantstore-client");

beforeAll(() => buildClientPackage(home), 60_000);
afterAll(() => folder[Symbol.dispose]());

test("has the product's version and no dependencies", () => {
  const own = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  expect([own.name, own.version]).toEqual(["plantstore-client", manifest.version]);
  expect(Object.keys(own).filter((key) => /dependencies/i.test(key))).toEqual([]);
});

test("resolvers that don't know exports find the code and its types", () => {
  const own = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
  expect({ types: own.types, default: own.main }).toEqual(own.exports);
});

test("its source map has the sources, without a path of this machine", () => {
  const map = JSON.parse(readFileSync(join(home, "plant-store.js.map"), "utf8"));
  expect(map.sources).toEqual(expect.arrayContaining(["send.ts", "plant-store.ts"]));
  expect(map.sources.join()).not.toContain("/");
  expect(map.sourcesContent.join("")).toContain("export class PlantStore {");
  expect(readFileSync(join(home, "plant-store.js"), "utf8")).toContain(
    "//# sourceMappingURL=plant-store.js.map",
  );
});

test("its code has less than 4.5 KB, compressed", () => {
  expect(gzipSync(readFileSync(join(home, "plant-store.js"))).length).toBeLessThan(4_500);
});

test("npm packs the code, its types, the documentation and the license", async () => {
  const packed = await Bun.$`npm pack --dry-run --json`.cwd(home).quiet().json();
  const files = packed[0].files.map(({ path }: { path: string }) => path);
  expect(files.toSorted()).toEqual([
    "LICENSE",
    "README.md",
    "package.json",
    "plant-store.d.ts",
    "plant-store.js",
    "plant-store.js.map",
    "problem-error.d.ts",
    "send.d.ts",
    "types.d.ts",
    "wire-text.d.ts",
    "wire-types.d.ts",
  ]);
}, 120_000);

test("Node imports it, and TypeScript finds its types", async () => {
  const program =
    'import { PlantStore } from "plantstore-client"; new PlantStore({ url: "http://a", token: "t" });';
  const { exitCode } = await Bun.$`node --input-type=module -e ${program}`.cwd(folder.path).quiet();
  expect(exitCode).toBe(0);
  const source = join(folder.path, "use.ts");
  await Bun.write(
    source,
    `import { type CreateResult, PlantStore } from "plantstore-client";
    const store = new PlantStore({ url: "http://localhost", token: "t" });
    export const results: Promise<CreateResult[]> = store.createMany([{ name: "Fern" }]);\n`,
  );
  const compiler = join(import.meta.dir, "../../node_modules/.bin/tsc");
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022"];
  const checked = await Bun.$`${compiler} ${flags} --types ${""} ${source}`
    .cwd(folder.path)
    .quiet()
    .nothrow();
  expect(checked.stdout.toString()).toBe("");
}, 120_000);
