/** How long it takes from the start of the process to the first response, and the memory then. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { build } from "../../scripts/build.ts";
import type { Contender, ContenderName } from "../contenders/contender.ts";
import { showProgress } from "../output.ts";
import { startChild } from "../process/children.ts";
import { findFreePort, loopback, waitUntilReady } from "../process/listening.ts";
import { readUsage } from "../process/usage.ts";
import { medianOf } from "./seat.ts";
import type { BenchContext } from "./side-by-side.ts";

export interface StartResult {
  readonly contender: ContenderName | "executable";
  readonly startMs: number;
  readonly residentMegabytes: number;
}

export interface StartResults {
  readonly executableMegabytes: number;
  readonly rows: readonly StartResult[];
}

const size = { gardens: 1, plants: 100 };
const pollMs = 1;
/** Threads and caches have settled by then. */
const settleMs = 300;

export async function measureStart({
  timing,
  workspace,
  contenders,
}: BenchContext): Promise<StartResults> {
  const executable = join(workspace.makeDirectory("executable"), "plantstore");
  showProgress("start: building the executable");
  await build(executable);
  const entries: { name: StartResult["contender"]; contender: Contender }[] = contenders.sqlite.map(
    (contender) => ({ name: contender.name, contender }),
  );
  const own = entries[0]?.contender;
  if (own) entries.splice(1, 0, { name: "executable", contender: runBy(own, executable) });
  const rows: StartResult[] = [];
  const prepared = await Promise.all(
    entries.map(async ({ name, contender }) => {
      const data = await contender.prepare(workspace.makeDirectory(name), size);
      return { name, contender, data, startsMs: [] as number[], megabytes: [] as number[] };
    }),
  );
  // Round 0 fills the caches of the file system.
  for (let round = 0; round <= timing.startRounds; round++) {
    showProgress(`start: round ${round} of ${timing.startRounds}`);
    for (const { contender, data, startsMs, megabytes } of prepared) {
      const port = findFreePort();
      const startedAtMs = performance.now();
      const child = startChild(contender.describeStart(data, port));
      try {
        await waitUntilReady(child, `${loopback}:${port}`, contender.readyPath, pollMs);
        const elapsedMs = performance.now() - startedAtMs;
        await Bun.sleep(settleMs);
        if (round === 0) continue;
        startsMs.push(elapsedMs);
        megabytes.push(readUsage(child.pid).residentMegabytes);
      } finally {
        await child.stop();
      }
    }
  }
  for (const { name, data, startsMs, megabytes } of prepared) {
    rows.push({
      contender: name,
      startMs: medianOf(startsMs),
      residentMegabytes: medianOf(megabytes),
    });
    workspace.remove(data.directory);
  }
  return { executableMegabytes: statSync(executable).size / 1e6, rows };
}

/** The same contender, but started as another program with the same arguments. */
function runBy(contender: Contender, program: string): Contender {
  return {
    ...contender,
    describeStart(data, port) {
      const wish = contender.describeStart(data, port);
      return { ...wish, command: [program, ...wish.command.slice(1)] };
    },
  };
}
