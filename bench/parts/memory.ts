/** How much memory Plant Store holds after many creates, and while many connections are idle. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { benchDirectory, bunPath } from "../contenders/paths.ts";
import { plantStore } from "../contenders/plant-store.ts";
import type { Share } from "../load/action.ts";
import { showProgress } from "../output.ts";
import { startChild } from "../process/children.ts";
import { countOpenFiles, readUsage } from "../process/usage.ts";
import type { BenchContext } from "./bench-context.ts";
import { Seat } from "./seat.ts";

export interface MemoryResult {
  readonly startMegabytes: number;
  readonly creates: number;
  /** The highest while they were made. */
  readonly creatingMegabytes: number;
  readonly afterCreatesMegabytes: number;
  readonly idleConnections: number;
  readonly idleMegabytes: number;
}

const connections = 64;
const chunkSeconds = 5;
/** Beyond this the part ends, however few creates there were; the result says how many. */
const createsDeadlineMs = 110_000;
const openDeadlineMs = 25_000;
const settleMs = 1_000;

export async function measureMemory(context: BenchContext): Promise<MemoryResult> {
  const { memoryCreates, memoryConnections } = context.plan;
  const { directory, credential } = await context.templates.copy(plantStore);
  const seat = await Seat.start(plantStore, directory);
  try {
    const startMegabytes = readUsage(seat.child.pid).residentMegabytes;
    const action = plantStore.describeAction("create", credential, 0);
    const made = await makePlants(seat, action ? [{ action, weight: 1 }] : [], memoryCreates);
    await Bun.sleep(settleMs);
    const afterCreatesMegabytes = readUsage(seat.child.pid).residentMegabytes;
    showProgress(`memory: ${memoryConnections.toLocaleString("en")} idle connections`);
    const idleMegabytes = await holdConnections(seat, memoryConnections);
    const idleConnections = memoryConnections;
    return { startMegabytes, ...made, afterCreatesMegabytes, idleConnections, idleMegabytes };
  } finally {
    await seat.child.stop();
    context.workspace.discard(directory);
  }
}

async function makePlants(seat: Seat, shares: readonly Share[], wanted: number) {
  const startedAtMs = performance.now();
  let creates = 0;
  let creatingMegabytes = 0;
  while (creates < wanted && performance.now() - startedAtMs < createsDeadlineMs) {
    const done = `${creates.toLocaleString("en")} of ${wanted.toLocaleString("en")}`;
    showProgress(`memory: ${done} creates`);
    const round = await seat.drive(shares, { connections, durationSeconds: chunkSeconds });
    creates += round.answers;
    creatingMegabytes = Math.max(creatingMegabytes, round.residentMegabytes);
  }
  return { creates, creatingMegabytes };
}

async function holdConnections(seat: Seat, count: number): Promise<number> {
  const donePath = join(seat.directory, "connections-are-open");
  const holder = startChild({
    command: [
      ...[bunPath, join(benchDirectory, "load", "idle-connections.ts")],
      ...[seat.host, String(count), donePath],
    ],
    logPath: join(seat.directory, "connections.log"),
  });
  try {
    const startedAtMs = performance.now();
    while (!existsSync(donePath)) {
      if (holder.hasExited() || performance.now() - startedAtMs > openDeadlineMs) {
        const said = await Bun.file(join(seat.directory, "connections.log")).text();
        throw new Error(`Could not hold ${count} connections: ${said.slice(0, 500)}`);
      }
      await Bun.sleep(50);
    }
    await Bun.sleep(settleMs);
    const openFiles = countOpenFiles(seat.child.pid);
    if (openFiles < count)
      throw new Error(`Only ${openFiles} of ${count} connections stayed open.`);
    return readUsage(seat.child.pid).residentMegabytes;
  } finally {
    await holder.stop();
  }
}
