/**
 * What must hold before a version goes out, but for what takes minutes: version, licences, SBOM,
 * sizes.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";

test("this version could be released", async () => {
  const script = join(import.meta.dir, "../scripts/release-check.ts");
  const child = Bun.spawn([process.execPath, script, "--quick"], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = (await new Response(child.stdout).text()).trimEnd().split("\n");
  expect(lines.map((line) => line.split(":")[0])).toEqual([
    "ok    version",
    "ok    licences",
    "ok    SBOM",
    "ok    sizes",
  ]);
}, 120_000);
