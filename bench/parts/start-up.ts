/** How long it takes from the start of the process to the first answer, against `bare`. */
import { bare, writeAnswers } from "../contenders/bare.ts";
import type { Contender } from "../contenders/contender.ts";
import { plantStore } from "../contenders/plant-store.ts";
import { showProgress } from "../output.ts";
import { startChild } from "../process/children.ts";
import { findFreePort, loopback } from "../process/free-port.ts";
import { waitUntilReady } from "../process/readiness.ts";
import type { BenchContext } from "./bench-context.ts";
import { medianOf } from "./median.ts";

export interface StartResult {
  readonly contender: "plant-store" | "bare";
  readonly medianMs: number;
  readonly roundsMs: readonly number[];
}

const pollMs = 1;
/** `bare` answers the path of the check by itself; this only gives it something to serve. */
const anyAnswer = { GET: { status: 200, headers: {}, body: "[]" } };

export async function measureStart(context: BenchContext): Promise<StartResult[]> {
  const stored = await context.templates.copy(plantStore);
  const empty = await context.templates.copy(bare);
  writeAnswers(empty.directory, anyAnswer);
  const entries = [
    { contender: plantStore, directory: stored.directory, roundsMs: [] as number[] },
    { contender: bare, directory: empty.directory, roundsMs: [] as number[] },
  ];
  // The first round only fills the caches of the file system.
  for (let round = 0; round <= context.plan.startRounds; round++) {
    showProgress(`start to first answer: round ${round} of ${context.plan.startRounds}`);
    for (const { contender, directory, roundsMs } of entries) {
      const elapsedMs = await timeStart(contender, directory);
      if (round > 0) roundsMs.push(elapsedMs);
    }
  }
  for (const { directory } of entries) context.workspace.discard(directory);
  return entries.map(({ contender, roundsMs }) => ({
    contender: contender.name as StartResult["contender"],
    medianMs: medianOf(roundsMs),
    roundsMs,
  }));
}

async function timeStart(contender: Contender, directory: string): Promise<number> {
  const port = findFreePort();
  const startedAtMs = performance.now();
  const child = startChild(contender.describeStart(directory, port));
  try {
    await waitUntilReady(child, `${loopback}:${port}`, contender.readyPath, pollMs);
    return performance.now() - startedAtMs;
  } finally {
    await child.stop();
  }
}
