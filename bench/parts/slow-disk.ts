/** What a disk that takes 5 ms to sync does to writers, and to readers beside them. */
import { join } from "node:path";
import type { Contender, ContenderName } from "../contenders/contender.ts";
import { fastify } from "../contenders/hand-written.ts";
import { benchDirectory } from "../contenders/paths.ts";
import { plantStore } from "../contenders/plant-store.ts";
import type { Share } from "../load/action.ts";
import { driveLoad } from "../load/wrk.ts";
import { showProgress } from "../output.ts";
import { runToEnd } from "../process/children.ts";
import type { BenchContext } from "./bench-context.ts";
import { medianRound } from "./median.ts";
import { type Round, Seat } from "./seat.ts";

const slowDiskTrials = [
  "creates",
  "lists alone",
  "lists beside writers",
  "paced lists alone",
  "paced lists beside writers",
] as const;
export type SlowDiskTrial = (typeof slowDiskTrials)[number];

export interface SlowDiskResult {
  readonly trial: SlowDiskTrial;
  readonly contender: ContenderName;
  readonly median: Round;
  readonly rounds: readonly Round[];
}

export const syncDelayMs = 5;
export const writerConnections = 256;
export const readerConnections = 64;
/** So few and so slow that the readers themselves never make the processors busy. */
export const pacedReaders = { connections: 16, pauseMs: 10 };
const plants = 1_000;

interface Entry {
  readonly seat: Seat;
  readonly creates: readonly Share[];
  readonly lists: readonly Share[];
  readonly rounds: Map<SlowDiskTrial, Round[]>;
}

/** Hands back why it could not be measured, where it could not. */
export async function measureSlowDisk(context: BenchContext): Promise<SlowDiskResult[] | string> {
  const library = await compileDelay(context);
  if (library === undefined) return "no C compiler is installed (apt-get install gcc)";
  const contenders = [plantStore, fastify].filter((one) => context.contenders.includes(one));
  const entries: Entry[] = [];
  try {
    for (const contender of contenders) {
      showProgress(`slow disk: ${contender.name} starts`);
      const entry = await takeSeat(context, contender, library);
      entries.push(entry);
      const fastestMs = await timeCreates(entry);
      if (fastestMs < syncDelayMs) {
        return `the delay does not reach ${contender.name}: a create took ${fastestMs.toFixed(1)} ms`;
      }
      const durationSeconds = context.plan.slowDisk.warmUpSeconds;
      await entry.seat.drive(entry.creates, { connections: writerConnections, durationSeconds });
      await entry.seat.rest();
    }
    for (const trial of slowDiskTrials) {
      const isCompared = trial === "creates" || context.plan.comparesReaders;
      await runTrial(context, isCompared ? entries : entries.slice(0, 1), trial);
    }
  } finally {
    for (const { seat } of entries) {
      await seat.child.stop();
      context.workspace.discard(seat.directory);
    }
  }
  return entries.flatMap(({ seat, rounds }) =>
    [...rounds].map(([trial, measured]) => ({
      trial,
      contender: seat.contender.name,
      median: medianRound(measured),
      rounds: measured,
    })),
  );
}

async function runTrial(
  context: BenchContext,
  entries: readonly Entry[],
  trial: SlowDiskTrial,
): Promise<void> {
  const { rounds, roundSeconds } = context.plan.slowDisk;
  for (let round = 1; round <= rounds; round++) {
    for (const entry of entries) {
      showProgress(
        `slow disk: ${trial}, round ${round} of ${rounds}, ${entry.seat.contender.name}`,
      );
      await entry.seat.wake();
      const measured = entry.rounds.get(trial) ?? [];
      entry.rounds.set(trial, [...measured, await runRound(entry, trial, roundSeconds)]);
      await entry.seat.rest();
    }
  }
}

async function runRound(entry: Entry, trial: SlowDiskTrial, seconds: number): Promise<Round> {
  const { seat, creates, lists } = entry;
  if (trial === "creates") {
    return seat.drive(creates, { connections: writerConnections, durationSeconds: seconds });
  }
  const readers = trial.startsWith("paced") ? pacedReaders : { connections: readerConnections };
  if (trial.endsWith("alone")) return seat.drive(lists, { ...readers, durationSeconds: seconds });
  // The writers start before the readers and outlast them.
  const writing = driveLoad(
    {
      host: seat.host,
      shares: creates,
      connections: writerConnections,
      durationSeconds: seconds + 1,
    },
    seat.directory,
  );
  await Bun.sleep(500);
  const round = await seat.drive(lists, { ...readers, durationSeconds: seconds });
  await writing;
  return round;
}

async function takeSeat(context: BenchContext, contender: Contender, library: string) {
  const { directory, credential } = await context.templates.copy(contender);
  contender.seed(directory, plants);
  const seat = await Seat.start(contender, directory, { LD_PRELOAD: library });
  const shares = (name: "create" | "list-20"): Share[] => {
    const action = contender.describeAction(name, credential, plants);
    return action ? [{ action, weight: 1 }] : [];
  };
  return { seat, creates: shares("create"), lists: shares("list-20"), rounds: new Map() };
}

/** The fastest of a few creates shows whether the delay takes effect at all. */
async function timeCreates({ seat, creates }: Entry): Promise<number> {
  let fastestMs = Number.POSITIVE_INFINITY;
  for (let count = 0; count < 5; count++) {
    const startedAtMs = performance.now();
    const action = creates.map((share) => ({
      ...share,
      action: { ...share.action, findFault: () => undefined },
    }));
    await seat.check(action);
    fastestMs = Math.min(fastestMs, performance.now() - startedAtMs);
  }
  return fastestMs;
}

async function compileDelay(context: BenchContext): Promise<string | undefined> {
  const compiler = ["cc", "gcc", "clang"].find((name) => Bun.which(name) !== null);
  if (compiler === undefined) return undefined;
  const library = join(context.workspace.path, "slow-sync.so");
  const source = join(benchDirectory, "native", "slow-sync.c");
  const output = await runToEnd({
    command: [compiler, "-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"],
  });
  if (output.exitCode !== 0) throw new Error(`slow-sync.c: ${output.standardError}`);
  return library;
}
