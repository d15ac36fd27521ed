/** `bin/plantstore` where npm has put no Bun next to it. */
import { describe, expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { readOutput } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const root = join(import.meta.dir, "../..");
const neededVersion = manifest.dependencies.bun;

/**
 * Runs `plantstore token list` from a folder without a Bun. The Bun on the PATH has this version,
 * and prints the arguments that it gets.
 */
async function launchWithBunOnPath(version: string) {
  using folder = makeTemporaryFolder();
  const packageFolder = join(folder.path, "package");
  mkdirSync(packageFolder);
  cpSync(join(root, "bin"), join(packageFolder, "bin"), { recursive: true });
  cpSync(join(root, "package.json"), join(packageFolder, "package.json"));

  const pathFolder = join(folder.path, "path");
  mkdirSync(pathFolder);
  const bun = join(pathFolder, "bun");
  writeFileSync(bun, `#!/bin/sh\n[ "$1" = --version ] && echo ${version} || echo "$@"\n`);
  chmodSync(bun, 0o755);

  const child = Bun.spawn([join(packageFolder, "bin/plantstore"), "token", "list"], {
    env: { PATH: `${pathFolder}:/usr/bin:/bin` },
    stdout: "pipe",
    stderr: "pipe",
  });
  return await readOutput(child);
}

describe("without a Bun of its own, the launcher", () => {
  test("runs the Bun on the PATH", async () => {
    const { exitCode, out } = await launchWithBunOnPath(neededVersion);

    expect(exitCode).toBe(0);
    expect(out).toMatch(/package\/src\/main\.ts token list\n$/);
  });

  test("prints nothing of its own if that Bun has the version it needs", async () => {
    const { errors } = await launchWithBunOnPath(neededVersion);

    expect(errors).toBe("");
  });

  test("runs a Bun of another version, too, and says so in one line", async () => {
    const { exitCode, out, errors } = await launchWithBunOnPath("1.3.9");

    expect(exitCode).toBe(0);
    expect(out).toMatch(/package\/src\/main\.ts token list\n$/);
    expect(errors).toBe(
      `plantstore: Using Bun 1.3.9 from your PATH, but Plant Store is tested with ${neededVersion}. ` +
        "Install plantstore again to get that.\n",
    );
  });
});
