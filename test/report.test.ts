/** The report of a run says what `bun test` said of each file: counts, reasons and messages. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeResult, readResult, summarize } from "./report.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

/** Runs a real test file, as test/run.ts does. */
async function runTest(code: string) {
  using folder = makeTemporaryFolder();
  const file = "some.test.ts";
  const skipping = join(import.meta.dir, "skipping.ts");
  const imports = `import { expect, test } from "bun:test"; import * as skipping from "${skipping}";`;
  await Bun.write(join(folder.path, file), `${imports}\n${code}`);
  const child = Bun.spawn([process.execPath, "test", "--only-failures", `./${file}`], {
    cwd: folder.path,
    stdout: "ignore",
    stderr: "pipe",
  });
  const output = await new Response(child.stderr).text();
  return readResult(file, output, { exitCode: await child.exited, seconds: 1.26 });
}

test("passes are counted in one line, and a skip is listed with its reason, once", async () => {
  const result = await runTest(
    `test("a", () => {});
     for (const name of "bc") test.skipIf(skipping.skipsWithout("no-such-program"))(name, () => {});`,
  );
  expect(result).toMatchObject({ passed: 1, skipped: 2, failed: 0 });
  expect(describeResult(result, "[1/1]")).toBe(
    "[1/1] ok     1.3 s  some.test.ts  1 passed, 2 skipped",
  );
  expect(summarize([result], 1)).toStartWith(
    "some.test.ts: 2 skipped (not installed: no-such-program)\n",
  );
});

test("a failure is named at once, and its message stands at the end", async () => {
  const result = await runTest('test("a", () => {}); test("b", () => expect(1).toBe(2));');
  expect(result).toMatchObject({ passed: 1, failed: 1 });
  expect(describeResult(result, "")).toMatch(/FAIL.*1 passed, 1 failed\n {4}\(fail\) b/);
  expect(summarize([result], 1)).toContain("Expected: 2\nReceived: 1");
});

test.each([
  ["throws while it is loaded", 'throw new Error("a loud end");', "a loud end"],
  ["ends its process", 'test("a", () => process.exit(7));', "It ended with 7"],
])("a file that %s has failed", async (_, code, message) => {
  const result = await runTest(code);
  expect(result).toMatchObject({ passed: 0, failed: 1 });
  expect(summarize([result], 1)).toContain(message);
});
