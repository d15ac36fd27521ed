/** A bundle is what starts only while it is of the sources that lie beside it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  cpSync,
  existsSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../temporary-folder.ts";

setDefaultTimeout(60_000);

const root = join(import.meta.dir, "../..");
const folder = makeTemporaryFolder();
/** What a clone has of the program. */
const clone = join(folder.path, "clone");
const service = join(clone, "dist/service");

function run(...command: string[]) {
  const { stdout, stderr } = Bun.spawnSync(command, { cwd: clone });
  return { out: stdout.toString(), errors: stderr.toString() };
}

const bundle = () => run(process.execPath, "scripts/bundle.ts");
const start = () => run("bin/plantstore", "--version").out;

beforeAll(() => {
  for (const part of ["bin", "scripts", "src", "package.json"]) {
    cpSync(join(root, part), join(clone, part), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(clone, "node_modules"));
  const main = join(clone, "src/main.ts");
  appendFileSync(
    main,
    '\nconsole.info(import.meta.dir.endsWith("service") ? "bundle" : "source");',
  );
});
afterAll(() => folder[Symbol.dispose]());

test("without a bundle, the sources start", () => {
  expect(existsSync(service)).toBe(false);
  expect(start()).toStartWith("source\n");
});

test("with one, the bundle starts, and its bytecode is used", () => {
  expect(bundle()).toEqual({ out: "", errors: "" });
  expect(start()).toStartWith("bundle\n");
  const code = readFileSync(join(service, "main.ts"), "utf8");
  expect(code).toContain("// @bun @bytecode");
  expect(existsSync(join(service, "main.ts.jsc"))).toBe(true);
  // It starts, with its threads, where it is installed, which is not where it was built.
  expect(code).not.toContain(folder.path);
});

test.each([
  "src/http/operations.ts",
  "src/storage/sqlite/worker.ts",
  "src/server/thread.ts",
  "src/storage/postgres/migrations/0001-start.sql",
  "package.json",
])("after a change of %s the sources start, until it is undone", (path) => {
  const before = readFileSync(join(clone, path), "utf8");
  appendFileSync(join(clone, path), "\n");
  expect(start()).toStartWith("source\n");
  writeFileSync(join(clone, path), before);
  expect(start()).toStartWith("bundle\n");
});

test("bundled again, changed sources start from the bundle", () => {
  appendFileSync(join(clone, "src/main.ts"), '\nconsole.info("changed");');
  expect(start()).toStartWith("source\nchanged\n");
  bundle();
  expect(start()).toStartWith("bundle\nchanged\n");
});

test("a bundle of another runtime, or a part of one, is not used", async () => {
  const path = join(service, "built-from.json");
  const builtFrom = await Bun.file(path).json();
  await Bun.write(path, JSON.stringify({ ...builtFrom, runtime: "another" }));
  expect(start()).toStartWith("source\n");
  rmSync(path);
  expect(start()).toStartWith("source\n");
});
