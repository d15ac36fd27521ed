/**
 * Runs the tests (`npm run test:all`): several files at a time, each in a process of its own, with
 * a PostgreSQL for each that runs and one Chromium for all. Takes parts of file names, and flags of
 * `bun test`. Fails when a test makes the working folder's data, which belong to the service that
 * may run here.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { startChromium } from "./browser/chromium.ts";
import { startPostgres } from "./postgres-server.ts";
import { describeResult, type FileResult, readResult, summarize } from "./report.ts";
import committedTimings from "./timings.json" with { type: "json" };

const root = join(import.meta.dir, "..");
const outputFolder = join(import.meta.dir, ".output");
const timingsFile = Bun.file(join(outputFolder, "timings.json"));
/** Tests wait for processes and timers as much as they compute. */
const workersCount = 2 * availableParallelism();
/** These look at response times, so they run after the others, beside those that mostly wait. */
const measuring = new Set(["proofs/hostile/hostile.test.ts"]);
const mostlyWaiting = new Set([
  "test/end-to-end/hanging-storage.test.ts",
  "src/storage/postgres/transaction.test.ts",
]);
/** Far beyond what any file takes: something hangs. */
const fileMs = 15 * 60_000;
const startedAtMs = performance.now();

const parameters = process.argv.slice(2);
const flagsAt = parameters.findIndex((each) => each.startsWith("-"));
const patterns = flagsAt < 0 ? parameters : parameters.slice(0, flagsAt);
const flags = flagsAt < 0 ? [] : parameters.slice(flagsAt);

const required = (process.env.PLANTSTORE_TEST_REQUIRE ?? "").split(",").filter(Boolean);
const lacking = required.filter((name) => name !== "browser" && Bun.which(name) === null);
if (lacking.length > 0) {
  print(`Required for these tests, but not installed: ${lacking.join(", ")}`);
  process.exit(1);
}

/** Whatever tests leave behind goes with it. PostgreSQL's own user must get in, too. */
const folder = mkdtempSync(join(tmpdir(), "plantstore-tests-"));
chmodSync(folder, 0o755);
mkdirSync(outputFolder, { recursive: true });

const chromiumStarting = startChromium();
const running = new Set<Subprocess>();
let isStopped = false;
// Tests end first, and then what they used.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    isStopped = true;
    for (const child of running) child.kill(signal);
  });
}
const chromium = await chromiumStarting;
if (typeof chromium === "string" && required.includes("browser")) {
  print(`Required for these tests: a browser. ${chromium}`);
  process.exit(1);
}

const data = join(root, "data");
const hadData = existsSync(data);
const timings: Record<string, number> = {
  ...committedTimings,
  ...(await timingsFile.json().catch(() => ({}))),
};
const files = findFiles();
const isLast = (file: string) => measuring.has(file) || mostlyWaiting.has(file);
const waiting = files.filter((file) => !isLast(file));
const results: FileResult[] = [];
print(`${files.length} test files, ${workersCount} at a time, the slowest first`);
await Promise.all(Array.from({ length: Math.min(workersCount, waiting.length) }, work));
if (!isStopped) {
  waiting.push(...files.filter(isLast));
  await Promise.all(waiting.map(work));
}
if (typeof chromium === "object") await chromium.stop();
rmSync(folder, { recursive: true, force: true });

if (flags.length === 0) await Bun.write(timingsFile, JSON.stringify(timings, undefined, 2));
print(summarize(results, (performance.now() - startedAtMs) / 1000));
const hasMadeData = !hadData && existsSync(data);
if (hasMadeData) print(`Tests made ${data}.`);
if (files.length === 0) print(`No test file has a name with ${patterns.join(" or ")}.`);
const unexplained = results.filter((each) => each.skipped > 0 && each.skipReasons.length === 0);
for (const { file } of unexplained) print(`${file} skips without a reason: see test/skipping.ts.`);
const isFailed = results.length < files.length || results.some(({ failed }) => failed > 0);
const isWrong = hasMadeData || unexplained.length > 0 || files.length === 0;
process.exit(isFailed || isWrong ? 1 : 0);

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** The slowest first, so that none is left to run alone at the end. */
function findFiles(): string[] {
  const secondsOf = (file: string) => timings[file] ?? 1;
  return [
    ...new Bun.Glob("{src,client,console,test,proofs,deploy,scripts,bench}/**/*.test.ts").scanSync({
      cwd: root,
    }),
  ]
    .filter((file) => !file.includes("node_modules/"))
    .filter((file) => patterns.length === 0 || patterns.some((pattern) => file.includes(pattern)))
    .toSorted((a, b) => secondsOf(b) - secondsOf(a));
}

/** Runs one file after the other, with a PostgreSQL that no other file uses at the same time. */
async function work(): Promise<void> {
  // Nothing here outlives the tests, so nothing waits for the disk.
  const flags = ["-c", "fsync=off", "-c", "full_page_writes=off"];
  const server = await startPostgres(flags).catch((error) => {
    print(error.message);
    rmSync(folder, { recursive: true, force: true });
    process.exit(1);
  });
  for (let file = waiting.shift(); file !== undefined && !isStopped; file = waiting.shift()) {
    const result = await runFile(file, server.port);
    if (isStopped && result.failed > 0) break;
    results.push(result);
    timings[file] = Math.round(result.seconds * 10) / 10;
    const position = `[${String(results.length).padStart(3)}/${files.length}]`;
    print(describeResult(result, position));
  }
  await server.stop();
}

async function runFile(file: string, postgresPort: number): Promise<FileResult> {
  // A file, because a process that a test left behind would keep a pipe open.
  const outputPath = join(folder, `output-${file.replaceAll("/", "-")}`);
  const output = openSync(outputPath, "w");
  const fileStartedAtMs = performance.now();
  const child = Bun.spawn(
    [process.execPath, "test", "--only-failures", "--timeout=120000", ...flags, `./${file}`],
    {
      cwd: root,
      env: {
        ...process.env,
        TMPDIR: folder,
        PLANTSTORE_TEST_POSTGRES: String(postgresPort),
        PLANTSTORE_TEST_BROWSER: typeof chromium === "object" ? chromium.endpoint : chromium,
      },
      stdio: ["ignore", output, output],
      timeout: fileMs,
      killSignal: "SIGKILL",
    },
  );
  running.add(child);
  const exitCode = await child.exited;
  running.delete(child);
  const seconds = (performance.now() - fileStartedAtMs) / 1000;
  return readResult(file, await Bun.file(outputPath).text(), { exitCode, seconds });
}
