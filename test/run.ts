/**
 * Runs tests: `quick` (npm test), `slow` (npm run test:slow) or `all`. Takes parts of file names,
 * and flags of `bun test`. All test files share one PostgreSQL and one Chromium; the checks of
 * style and types run beside them. Fails when a test makes the working folder's data, which belong
 * to the service that may run here.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { startSharedPostgres } from "../testing/postgres-server.ts";
import { fastestParent } from "../testing/temporary-folder.ts";
import { startChromium } from "./browser/chromium.ts";

const root = join(import.meta.dir, "..");
const outputFolder = join(import.meta.dir, ".output");
const timings = join(outputFolder, "file-times.json");
/** Tests wait for processes and timers as much as they compute. */
const workersCount = 2 * availableParallelism();
/** Far beyond what a run takes: something hangs. */
const runMs = 20 * 60_000;

const [set = "all", ...parameters] = process.argv.slice(2);
const flagsAt = parameters.findIndex((each) => each.startsWith("-"));
const parts = flagsAt < 0 ? parameters : parameters.slice(0, flagsAt);
const flags = flagsAt < 0 ? [] : parameters.slice(flagsAt);
const files = findFiles();
if (files.length === 0) fail(`No test file has a name with ${parts.join(" or ")}.`);

const required = (process.env.PLANTSTORE_TEST_REQUIRE ?? "").split(",").filter(Boolean);
const lacking = required.filter((name) => name !== "browser" && Bun.which(name) === null);
if (lacking.length > 0) fail(`Required for these tests, but not installed: ${lacking.join(", ")}`);

const startedAtMs = performance.now();
const data = join(root, "data");
const hadData = existsSync(data);
/** Whatever tests leave behind goes with it. PostgreSQL's own user must get in, too. */
const folder = mkdtempSync(join(fastestParent(), "plantstore-tests-"));
chmodSync(folder, 0o755);
mkdirSync(outputFolder, { recursive: true });
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
process.env.TMPDIR = folder;

const isWhole = set === "quick" && parameters.length === 0;
const checks = isWhole ? ["check:style", "check:types"].map(runCheck) : [];
const [postgres, chromium] = await Promise.all([
  startSharedPostgres().catch((error) => fail(error.message)),
  startChromium(),
]);
const browser = typeof chromium === "object" ? chromium.endpoint : chromium;
if (typeof chromium === "string" && required.includes("browser")) {
  fail(`Required for these tests: a browser. ${chromium}`);
}
const areTestsOk = await runTests();
const areChecksOk = (await Promise.all(checks)).every(Boolean);
if (typeof chromium === "object") await chromium.stop();
await postgres.stop();

const hasMadeData = !hadData && existsSync(data);
if (hasMadeData) print(`Tests made ${data}.`);
const isOk = areTestsOk && areChecksOk && !hasMadeData;
print(`\n${isOk ? "ok  " : "FAIL"} ${files.length} test files, ${secondsSince(startedAtMs)} s`);
process.exit(isOk ? 0 : 1);

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function fail(reason: string): never {
  print(reason);
  process.exit(1);
}

function secondsSince(ms: number): number {
  return Math.round((performance.now() - ms) / 1000);
}

/** The short forms of proofs are slow, and so is everything in test/slow/. */
function findFiles(): string[] {
  const pattern = "{src,client,console,test,proofs,deploy,scripts,bench}/**/*.test.{ts,tsx}";
  return [...new Bun.Glob(pattern).scanSync({ cwd: root })]
    .filter((file) => !file.includes("node_modules/"))
    .filter((file) => set === "all" || isSlow(file) === (set === "slow"))
    .filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
}

function isSlow(file: string): boolean {
  return file.startsWith("proofs/") || file.startsWith("test/slow/");
}

/** Prints what it says only if it fails. */
async function runCheck(script: string): Promise<boolean> {
  const checkStartedAtMs = performance.now();
  const child = Bun.spawn(["npm", "run", "-s", script], { cwd: root, stderr: "pipe" });
  const texts = await Promise.all([child.stdout.text(), child.stderr.text()]);
  const isOk = (await child.exited) === 0;
  if (!isOk) print(texts.join(""));
  print(`${isOk ? "ok  " : "FAIL"} ${script}, ${secondsSince(checkStartedAtMs)} s`);
  return isOk;
}

/** Shows the output of `bun test`, which says what failed and what was skipped, and why. */
async function runTests(): Promise<boolean> {
  const remembered = flags.length === 0 ? [`--timings=${timings}`, "--update-timings"] : [];
  const options = ["--only-failures", "--timeout=120000", ...remembered, ...flags];
  const paths = files.map((file) => `./${file}`);
  const child = Bun.spawn(
    [process.execPath, "test", `--parallel=${workersCount}`, ...options, ...paths],
    {
      cwd: root,
      env: {
        ...process.env,
        PLANTSTORE_TEST_POSTGRES: String(postgres.port),
        PLANTSTORE_TEST_BROWSER: browser,
      },
      stdio: ["ignore", "inherit", "inherit"],
      timeout: runMs,
    },
  );
  // Tests end first, and then what they use.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
  return (await child.exited) === 0;
}
