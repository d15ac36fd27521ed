/** Runs scenarios against their contenders, which take turns round by round. */
import { type ResponsesByMethod, writeResponses } from "../contenders/bare.ts";
import type { Contender, ContenderName, Engine, Size } from "../contenders/contender.ts";
import { dropDatabase } from "../contenders/postgres-server.ts";
import type { Share } from "../load/action.ts";
import { showProgress } from "../output.ts";
import type { Workspace } from "../process/workspace.ts";
import type { Scenario, Timing } from "../scenarios.ts";
import { medianOf, type Round, Seat } from "./seat.ts";

export interface BenchContext {
  readonly timing: Timing;
  readonly workspace: Workspace;
  /** Those that run on this machine and were not left out; Plant Store comes first. */
  readonly contenders: Readonly<Record<Engine, readonly Contender[]>>;
}

/** The medians of a scenario's rounds; of faults, the sum. */
export interface Cell {
  readonly scenario: string;
  readonly contender: ContenderName;
  /** Responses, or plants where a response stands for many. */
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicroseconds: number;
  readonly residentMegabytes: number;
  readonly othersCpuShare: number;
  readonly faults: number;
}

interface Entry {
  readonly scenario: Scenario;
  readonly seat: Seat;
  readonly shares: readonly Share[];
  readonly rounds: Round[];
}

/** Scenarios of one group take turns, too. */
export async function runScenarios(
  context: BenchContext,
  group: readonly Scenario[],
): Promise<Cell[]> {
  const { timing, workspace } = context;
  const entries: Entry[] = [];
  try {
    for (const scenario of group) await takeSeats(context, scenario, entries);
    const isHeadline = group.some((scenario) => scenario.isHeadline);
    const roundCount = isHeadline ? timing.headlineRounds : timing.otherRounds;
    for (let round = 1; round <= roundCount; round++) {
      for (const { scenario, seat, shares, rounds } of entries) {
        const { name, connections, roundSecondsMin = 0 } = scenario;
        showProgress(`${name}: round ${round} of ${roundCount}, ${seat.contender.name}`);
        await seat.wake();
        const seconds = Math.max(timing.roundSeconds, roundSecondsMin);
        rounds.push(await seat.drive(shares, connections, seconds));
        await seat.rest();
      }
    }
  } finally {
    for (const { scenario, seat } of entries) {
      await seat.stop();
      if (scenario.engine === "postgres") await dropDatabase(seat.data.database);
      workspace.remove(seat.data.directory);
    }
  }
  return entries.map(toCell);
}

async function takeSeats(
  context: BenchContext,
  scenario: Scenario,
  entries: Entry[],
): Promise<void> {
  const { name, connections } = scenario;
  let responses: ResponsesByMethod = {};
  for (const contender of context.contenders[scenario.engine]) {
    if (scenario.contenders && !scenario.contenders.includes(contender.name)) continue;
    showProgress(`${name}: ${contender.name} starts`);
    const entry = await takeSeat(context, scenario, contender, responses);
    if (!entry) continue;
    entries.push(entry);
    const recorded = await entry.seat.check(entry.shares);
    if (contender.name === "plant-store") responses = recorded;
    await entry.seat.drive(entry.shares, connections, context.timing.warmUpSeconds);
    await entry.seat.rest();
  }
}

/** Absent if the contender has nothing of the kind. */
async function takeSeat(
  { timing, workspace }: BenchContext,
  scenario: Scenario,
  contender: Contender,
  responses: ResponsesByMethod,
): Promise<Entry | undefined> {
  const size = sizeFor(scenario, contender, timing);
  const shares: Share[] = [];
  for (const { action, weight } of scenario.mix) {
    const described = contender.describeAction(action, size);
    if (!described) return undefined;
    shares.push({ action: described, weight });
  }
  const data = await contender.prepare(workspace.makeDirectory(contender.name), size);
  if (contender.isEcho) writeResponses(data, responses);
  return { scenario, seat: await Seat.start(contender, data, size), shares, rounds: [] };
}

/** Deletes need as many plants as they may get through. */
function sizeFor(scenario: Scenario, contender: Contender, timing: Timing): Size {
  const { size, mix, isHeadline, roundSecondsMin = 0 } = scenario;
  const isBulk = mix.some(({ action }) => action === "bulk-delete");
  if (!isBulk && !mix.some(({ action }) => action === "delete")) return size;
  const rounds = isHeadline ? timing.headlineRounds : timing.otherRounds;
  const seconds = timing.warmUpSeconds + rounds * Math.max(timing.roundSeconds, roundSecondsMin);
  const perSecond = contender.deletesPerSecondMax * (isBulk ? bulkFactor : 1);
  return { ...size, plants: size.plants + seconds * perSecond };
}

/** How many times as many plants bulks may delete. */
const bulkFactor = 4;

function toCell({ scenario, seat, shares, rounds }: Entry): Cell {
  const middle = (pick: (round: Round) => number) => medianOf(rounds.map(pick));
  const plants = shares[0]?.action.plants ?? 1;
  return {
    scenario: scenario.name,
    contender: seat.contender.name,
    perSecond: plants * middle((round) => round.responsesPerSecond),
    p50Ms: middle((round) => round.p50Ms),
    p99Ms: middle((round) => round.p99Ms),
    cpuMicroseconds: middle((round) => round.cpuMicroseconds) / plants,
    residentMegabytes: middle((round) => round.residentMegabytes),
    othersCpuShare: middle((round) => round.othersCpuShare),
    faults: rounds.reduce((sum, round) => sum + round.faults, 0),
  };
}
