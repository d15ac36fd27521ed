/** The long form itself: what was not tried does not pass, and what fails can be found again. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../temporary-folder.ts";

const proof = join(import.meta.dir, "proof.ts");

/** A proof of three trials, by what one of them does. */
async function proveWith(run: string, ...args: readonly string[]) {
  using folder = makeTemporaryFolder();
  const script = join(folder.path, "prove.ts");
  writeFileSync(
    script,
    `import { prove } from ${JSON.stringify(proof)};
     await prove({ name: "sums", trials: "sums", count: 3, run: ${run} });`,
  );
  const child = Bun.spawn([process.execPath, script, ...args], { stdout: "pipe", stderr: "pipe" });
  const out = await new Response(child.stdout).text();
  return { exitCode: await child.exited, out };
}

test("figures are added up over all trials, and without a fault it passes", async () => {
  const { exitCode, out } = await proveWith("async (seed) => ({ faults: [], figures: { seed } })");
  expect(out).toContain("3/3 sums, 0 with faults");
  expect(exitCode).toBe(0);
});

test.each([
  ["has a fault", 'return { faults: ["wrong"], figures: {} };', "seed 8: wrong\n"],
  ["cannot be finished", 'throw new Error("stuck");', "seed 8: not finished: Error: stuck\n"],
])("a trial that %s is told with the seed that leads there again", async (_, body, told) => {
  const run = `async (seed) => { if (seed !== 8) return { faults: [], figures: {} }; ${body} }`;
  const { exitCode, out } = await proveWith(run, "3", "7");
  expect(out).toContain(told);
  expect(out).toContain("again: npm run prove:sums -- 1 8\n");
  expect(out).toContain("3/3 sums, 1 with faults");
  expect(exitCode).toBe(1);
});

test.each(["0", "2,000", "many", "-5", ""])(
  "%p trials are none, and do not pass",
  async (count) => {
    const { exitCode, out } = await proveWith("async () => ({ faults: [], figures: {} })", count);
    expect([exitCode, out]).toEqual([1, ""]);
  },
);
