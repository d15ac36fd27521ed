/** How much memory Plant Store holds after many creates, and with many idle connections. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Contender } from "../contenders/contender.ts";
import { showProgress } from "../output.ts";
import { benchDirectory, bunPath } from "../paths.ts";
import { type Child, startChild } from "../process/children.ts";
import { countOpenFiles, readUsage } from "../process/usage.ts";
import { Seat } from "./seat.ts";
import type { BenchContext } from "./side-by-side.ts";

export interface MemoryResult {
  readonly creates: number;
  readonly peakMegabytes: number;
  readonly afterMegabytes: number;
  readonly idleConnections: number;
  readonly idleMegabytes: number;
}

const size = { gardens: 1, plants: 1_000 };
const connections = 64;
const chunkSeconds = 5;
/** Then it ends with fewer creates, and says so. */
const createsDeadlineMs = 110_000;
const openDeadlineMs = 25_000;
const settleMs = 1_000;

export async function measureMemory(
  { timing, workspace }: BenchContext,
  contender: Contender,
): Promise<MemoryResult> {
  const data = await contender.prepare(workspace.makeDirectory(contender.name), size);
  const seat = await Seat.start(contender, data, size);
  const child = seat.instances[0]?.child as Child;
  try {
    const made = await makePlants(seat, timing.memoryCreates);
    await Bun.sleep(settleMs);
    const afterMegabytes = readUsage(child.pid).residentMegabytes;
    const idleConnections = timing.memoryConnections;
    showProgress(`memory: ${idleConnections.toLocaleString("en")} idle connections`);
    const idleMegabytes = await holdConnections(seat, child, idleConnections);
    return { ...made, afterMegabytes, idleConnections, idleMegabytes };
  } finally {
    await seat.stop();
    workspace.remove(data.directory);
  }
}

async function makePlants(seat: Seat, wanted: number) {
  const action = seat.contender.describeAction("create-key7", size);
  const shares = action ? [{ action, weight: 1 }] : [];
  const startedAtMs = performance.now();
  let creates = 0;
  let peakMegabytes = 0;
  while (creates < wanted && performance.now() - startedAtMs < createsDeadlineMs) {
    showProgress(
      `memory: ${creates.toLocaleString("en")} of ${wanted.toLocaleString("en")} creates`,
    );
    const round = await seat.drive(shares, connections, chunkSeconds);
    creates += round.responses;
    peakMegabytes = Math.max(peakMegabytes, round.residentMegabytes);
  }
  return { creates, peakMegabytes };
}

async function holdConnections(seat: Seat, child: Child, count: number): Promise<number> {
  const { directory } = seat.data;
  const donePath = join(directory, "connections-are-open");
  const logPath = join(directory, "connections.log");
  const program = join(benchDirectory, "load", "idle-connections.ts");
  const host = seat.instances[0]?.host ?? "";
  const holder = startChild({
    command: [bunPath, program, host, String(count), donePath],
    logPath,
  });
  try {
    const startedAtMs = performance.now();
    while (!existsSync(donePath)) {
      if (holder.hasExited() || performance.now() - startedAtMs > openDeadlineMs) {
        const said = await Bun.file(logPath).text();
        throw new Error(`Can't hold ${count} connections: ${said.slice(0, 500)}`);
      }
      await Bun.sleep(50);
    }
    await Bun.sleep(settleMs);
    const openFiles = countOpenFiles(child.pid);
    if (openFiles < count)
      throw new Error(`Only ${openFiles} connections of ${count} stayed open.`);
    return readUsage(child.pid).residentMegabytes;
  } finally {
    await holder.stop();
  }
}
