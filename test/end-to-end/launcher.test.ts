/** `bin/plantstore` where npm has put no Bun next to it. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readOutput } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const root = join(import.meta.dir, "../..");
const manifest = await Bun.file(join(root, "package.json")).json();
const pinned: string = manifest.dependencies.bun;

let folder: ReturnType<typeof makeTemporaryFolder>;
beforeEach(() => {
  folder = makeTemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** Runs the launcher, with a Bun of this version on the PATH that prints what it is to run. */
function launch(version: string) {
  const [package_, path] = [join(folder.path, "package"), join(folder.path, "path")];
  for (const each of [package_, path]) mkdirSync(each);
  for (const name of ["bin", "package.json"]) {
    cpSync(join(root, name), join(package_, name), { recursive: true });
  }
  const bun = join(path, "bun");
  writeFileSync(bun, `#!/bin/sh\n[ "$1" = --version ] && echo ${version} || echo "$@"\n`);
  chmodSync(bun, 0o755);
  const child = Bun.spawn([join(package_, "bin/plantstore"), "token", "list"], {
    env: { PATH: `${path}:/usr/bin:/bin` },
    stdout: "pipe",
    stderr: "pipe",
  });
  return readOutput(child);
}

const started = expect.stringMatching(/package\/src\/main\.ts token list\n$/);

test("it uses the Bun on the PATH, and says so in one line if that has another version", async () => {
  const errors =
    `plantstore: Using Bun 1.3.9 from your PATH, but Plant Store is tested with ${pinned}. ` +
    "Install plantstore again to get that.\n";
  expect(await launch("1.3.9")).toEqual({ exitCode: 0, out: started, errors });
});

test("it uses the Bun on the PATH, and says nothing if that has the version it needs", async () => {
  expect(await launch(pinned)).toEqual({ exitCode: 0, out: started, errors: "" });
});
