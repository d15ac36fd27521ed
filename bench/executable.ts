/**
 * `npm run bench:executable -- [ROUNDS]`: the single executable next to `npm start`: start, memory,
 * size.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { build } from "../scripts/build.ts";
import { rootDirectory } from "./contenders/paths.ts";
import { databasePath, plantStore } from "./contenders/plant-store.ts";
import { say, showProgress } from "./output.ts";
import { medianOf } from "./parts/median.ts";
import { startChild } from "./process/children.ts";
import { findFreePort, loopback } from "./process/free-port.ts";
import { waitUntilReady } from "./process/readiness.ts";
import { readUsage } from "./process/usage.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

const rounds = Number(process.argv[2] ?? 15);
/** Caches and threads have settled by then. */
const settleMs = 300;
const workspace = new Workspace();

try {
  const directory = workspace.makeDirectory("executable");
  await plantStore.prepare(directory);
  const executable = join(directory, "plantstore");
  await build(executable);
  const ways = [
    { name: "npm start", command: ["npm", "start", "--"] },
    { name: "bin/plantstore serve", command: ["bin/plantstore", "serve"] },
    { name: "dist/plantstore serve", command: [executable, "serve"] },
  ].map((way) => ({ ...way, startsMs: [] as number[], megabytes: [] as number[] }));

  // The first round only fills the caches of the file system.
  for (let round = 0; round <= rounds; round++) {
    showProgress(`round ${round} of ${rounds}`);
    for (const { command, startsMs, megabytes } of ways) {
      const port = findFreePort();
      const startedAtMs = performance.now();
      const flags = ["--port", String(port), "--database", databasePath(directory)];
      const child = startChild({ command: [...command, ...flags], directory: rootDirectory });
      await waitUntilReady(child, `${loopback}:${port}`, "/healthz", 1);
      if (round > 0) startsMs.push(performance.now() - startedAtMs);
      await Bun.sleep(settleMs);
      if (round > 0) megabytes.push(readUsage(child.pid).residentMegabytes);
      await child.stop();
    }
  }
  say(
    renderTable(
      ["", "start to first response, ms", "resident MB"],
      ways.map(({ name, startsMs, megabytes }) => [
        name,
        medianOf(startsMs).toFixed(0),
        medianOf(megabytes).toFixed(0),
      ]),
    ),
  );
  say(`\nThe executable has ${(statSync(executable).size / 1e6).toFixed(1)} MB; ${rounds} rounds.`);
} finally {
  workspace.remove();
}
