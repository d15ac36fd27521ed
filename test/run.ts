/**
 * Runs the tests (`npm run test:all`): files in parallel, with one PostgreSQL per worker and one
 * Chromium for all. Takes what `bun test` takes. Fails when a test reaches for the working folder's
 * data or the default port, which belong to the service that may run here.
 */
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "bun";
import { startChromium } from "./browser/chromium.ts";
import { startPostgres } from "./postgres-server.ts";

const root = join(import.meta.dir, "..");
const timings = join(import.meta.dir, ".output/timings.json");
/** Tests wait for processes and timers as much as they compute. */
const workers = 2 * availableParallelism();

/** Whatever tests leave behind goes with it. PostgreSQL's own user must get in, too. */
const folder = mkdtempSync(join(tmpdir(), "plantstore-tests-"));
chmodSync(folder, 0o755);

const required = (process.env.PLANTSTORE_TEST_REQUIRE ?? "").split(",").filter(Boolean);
const [chromium, ...servers] = await Promise.all([
  startChromium(),
  ...Array.from({ length: workers }, () => startPostgres(["-c", "fsync=off"])),
]);
const tools = ["bash", "zsh", "fish", "curl"].filter((tool) => Bun.which(tool) === null);
const missing = [
  {
    name: "browser",
    what: `the console and /docs: ${chromium}`,
    isThere: typeof chromium === "object",
  },
  {
    name: "shells",
    what: `completion, or the printed commands: not installed: ${tools.join(", ")}`,
    isThere: tools.length === 0,
  },
].filter(({ isThere }) => !isThere);
const lacking = missing.filter(({ name }) => required.includes(name));
if (lacking.length > 0) await finish(1);

const guard = guardDefaults();
mkdirSync(join(import.meta.dir, ".output"), { recursive: true });
// The slowest files start first; until a run has measured them here, by these figures.
if (!existsSync(timings)) copyFileSync(join(import.meta.dir, "timings.json"), timings);
const child = Bun.spawn(
  [
    ...[process.execPath, "test", `--parallel=${workers}`, "--only-failures", "--timeout=30000"],
    ...[`--timings=${timings}`, "--update-timings", ...process.argv.slice(2)],
  ],
  {
    cwd: root,
    env: {
      ...process.env,
      TMPDIR: folder,
      PLANTSTORE_TEST_POSTGRES: servers.map(({ port }) => port).join(","),
      PLANTSTORE_TEST_BROWSER: typeof chromium === "object" ? chromium.endpoint : "",
    },
    stdio: ["inherit", "inherit", "inherit"],
  },
);
// Then they end first, and what they used goes with them.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
const exitCode = await child.exited;
const breaches = guard.findBreaches();
for (const breach of breaches) process.stderr.write(`\n${breach}\n`);
await finish(exitCode || (breaches.length > 0 ? 1 : 0));

/** Says last what was not tested, where nobody overlooks it. */
async function finish(exitCode: number): Promise<never> {
  await Promise.all([
    typeof chromium === "object" && chromium.stop(),
    ...servers.map((server) => server.stop()),
  ]);
  rmSync(folder, { recursive: true, force: true });
  for (const { name, what } of missing) {
    const verdict = required.includes(name) ? "required, so this fails" : "install it to test it";
    process.stderr.write(`\nNOT TESTED (${name}): ${what} (${verdict}).\n`);
  }
  process.exit(exitCode);
}

/** Takes the default port, unless a service has it, and notices whoever connects to it. */
function guardDefaults(): { findBreaches(): string[] } {
  const data = join(root, "data");
  const hadData = existsSync(data);
  let connections = 0;
  try {
    const open = (socket: Socket) => {
      connections++;
      socket.end();
    };
    Bun.listen({ hostname: "127.0.0.1", port: 8080, socket: { open, data() {} } }).unref();
  } catch {
    // A service runs there, and whatever disturbed it would fail.
    return { findBreaches: () => [] };
  }
  return {
    findBreaches: () => [
      ...(connections > 0 ? [`Tests made ${connections} connections to port 8080.`] : []),
      ...(!hadData && existsSync(data) ? [`Tests made ${data}.`] : []),
    ],
  };
}
