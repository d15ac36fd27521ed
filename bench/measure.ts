/** The measurements. The contenders take turns in each of them. */
import { writeFileSync } from "node:fs";
import type { Contender } from "./contenders.ts";
import { readMegabytes } from "./processes.ts";
import { type Action, actions, type RecordedResponse } from "./requests.ts";
import { type Scenario, type Timing, warmUpSeconds } from "./scenarios.ts";
import { type Round, Server } from "./server.ts";

/** One figure of the table: the median of a contender's rounds, or the peak of its memory. */
export interface Cell {
  readonly row: string;
  readonly contender: string;
  readonly value: number;
  /** From the lowest round to the highest, as a share of the median. */
  readonly spread?: number;
  readonly p99Ms?: number;
  readonly cpuUsPerResponse?: number;
  readonly othersCpuShare?: number;
  /** The sum of all rounds. */
  readonly failures?: number;
}

/** Reports progress, with the time since the start. */
export function say(text: string): void {
  const seconds = Math.floor(performance.now() / 1000);
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  process.stdout.write(`${clock}  ${text}\n`);
}

/** More than any contender deletes in a second. So many plants are stored beforehand. */
const deletesPerSecondMax = 50_000;
const versions = ["plant-store", "previous", "previous-again"];

export async function measureScenario(
  scenario: Scenario,
  contenders: readonly Contender[],
  timing: Timing,
): Promise<Cell[]> {
  const { name, connections, engine } = scenario;
  const seconds = timing.roundSeconds * (scenario.isSlow ? 2 : 1);
  const deletes = deletesPerSecondMax * (warmUpSeconds + timing.rounds * seconds);
  const more = scenario.actions.includes("delete") ? deletes : 0;
  const size = { ...scenario.size, plants: scenario.size.plants + more };
  const sent: readonly Action[] = scenario.actions.map((action) => actions[action]);
  const has = (one: Contender) =>
    scenario.actions.every((action) => one.actions?.includes(action) ?? true);
  const entries: { server: Server; rounds: Round[] }[] = [];
  let responses: Record<string, RecordedResponse> = {};
  say(`${name}: the contenders start`);
  try {
    for (const contender of contenders.filter((one) => one.engine === engine && has(one))) {
      const server = await Server.prepare(contender, size);
      entries.push({ server, rounds: [] });
      if (contender.name === "bare") writeFileSync(server.data.database, JSON.stringify(responses));
      await server.start();
      const recorded = await server.check(sent);
      if (contender.name === "plant-store") responses = recorded;
      await server.drive(sent, connections, warmUpSeconds);
      await server.rest();
    }
    for (let round = 1; round <= timing.rounds; round++) {
      say(`${name}: round ${round} of ${timing.rounds}`);
      for (const { server, rounds } of entries) {
        // The ratio of two versions must be exact. The others sit out every second round.
        if (round % 2 === 0 && !versions.includes(server.contender.name)) continue;
        await server.wake();
        rounds.push(await server.drive(sent, connections, seconds));
        await server.rest();
      }
    }
    const plants = sent[0]?.plants ?? 1;
    return entries.map(({ server, rounds }) => ({
      row: name,
      contender: server.contender.name,
      ...(scenario.unit === "MB"
        ? { value: readMegabytes(server.pid, "VmHWM") }
        : summarize(rounds.map((round) => round.responsesPerSecond * plants))),
      p99Ms: medianOf(rounds.map((round) => round.p99Ms)),
      cpuUsPerResponse: medianOf(rounds.map((round) => round.cpuUsPerResponse)),
      othersCpuShare: medianOf(rounds.map((round) => round.othersCpuShare)),
      failures: rounds.reduce((sum, { failures }) => sum + failures, 0),
    }));
  } finally {
    for (const { server } of entries) await server.remove();
  }
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function summarize(values: readonly number[]): Pick<Cell, "value" | "spread"> {
  const value = medianOf(values);
  return { value, spread: (Math.max(...values) - Math.min(...values)) / value };
}

const smallSize = { gardens: 1, plants: 1_000 };
/** Threads and caches have settled by then. */
const settleMs = 300;

/** The time from the start of the process to its first response, and the memory then. */
export async function measureStart(
  contenders: readonly Contender[],
  { starts }: Timing,
): Promise<Cell[]> {
  const entries = [];
  for (const contender of contenders.filter(({ engine }) => engine === "sqlite")) {
    const server = await Server.prepare(contender, smallSize);
    entries.push({ server, times: [] as number[], megabytes: [] as number[] });
  }
  // Round 0 fills the caches of the file system.
  for (let round = 0; round <= starts; round++) {
    say(`start: round ${round} of ${starts}`);
    for (const { server, times, megabytes } of entries) {
      const startedAtMs = performance.now();
      await server.start();
      const elapsedMs = performance.now() - startedAtMs;
      await Bun.sleep(settleMs);
      if (round > 0) times.push(elapsedMs);
      if (round > 0) megabytes.push(readMegabytes(server.pid, "VmRSS"));
      await server.stop();
    }
  }
  return entries.flatMap(({ server, times, megabytes }) => {
    const contender = server.contender.name;
    return [
      { row: "start", contender, ...summarize(times) },
      { row: "start-memory", contender, ...summarize(megabytes) },
    ];
  });
}
