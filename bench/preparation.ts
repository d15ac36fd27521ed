/** Checks that the machine has what the benchmark needs, and installs the peers. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { say, showProgress } from "./output.ts";
import manifest from "./package.json" with { type: "json" };
import { benchDirectory } from "./paths.ts";
import { runToEnd } from "./process/children.ts";

export async function prepareMachine(): Promise<void> {
  if (process.platform !== "linux") {
    throw new Error("The benchmark runs on Linux only, because it reads /proc.");
  }
  if (Bun.which("wrk") === null) {
    throw new Error(
      "wrk, the load generator, isn't installed. Install it with: apt-get install wrk",
    );
  }
  await installPeers();
}

/** npm writes this file when it has put everything in place. */
const installedMark = ".package-lock.json";
const progressEveryMs = 5_000;

async function installPeers(): Promise<void> {
  const engine = join("better-sqlite3", "build", "Release", "better_sqlite3.node");
  const needed = [...Object.keys(manifest.dependencies), installedMark, engine];
  if (needed.every((path) => existsSync(join(benchDirectory, "node_modules", path)))) return;
  say("First use: installing the peers into bench/node_modules. better-sqlite3 may be compiled,");
  say("which takes some minutes.");
  const timer = setInterval(
    () => showProgress("npm ci in bench/ is still running"),
    progressEveryMs,
  );
  const output = await runToEnd({ command: ["npm", "ci"], directory: benchDirectory });
  clearInterval(timer);
  if (output.exitCode !== 0) throw new Error(`npm ci in bench/ failed: ${output.standardError}`);
}
