/** Runs one scenario against all contenders in turn, round by round. */
import { type AnswersByMethod, writeAnswers } from "../contenders/bare.ts";
import type { Contender, ContenderName } from "../contenders/contender.ts";
import type { Share } from "../load/action.ts";
import { showProgress } from "../output.ts";
import type { Timing } from "../plan.ts";
import type { Scenario } from "../scenarios.ts";
import type { BenchContext } from "./bench-context.ts";
import { medianRound } from "./median.ts";
import { type Round, Seat } from "./seat.ts";

export interface ScenarioResult {
  readonly scenario: string;
  readonly title: string;
  readonly connections: number;
  readonly contender: ContenderName;
  readonly median: Round;
  readonly rounds: readonly Round[];
}

interface Entry {
  readonly seat: Seat;
  readonly shares: readonly Share[];
  readonly rounds: Round[];
}

export async function runScenario(
  context: BenchContext,
  scenario: Scenario,
): Promise<ScenarioResult[]> {
  const usual = scenario.isHeadline ? context.plan.headline : context.plan.others;
  const roundSeconds = Math.max(usual.roundSeconds, scenario.roundSecondsMin ?? 0);
  const timing = { ...usual, roundSeconds };
  const label = `${scenario.title}, ${scenario.connections} connections`;
  const entries: Entry[] = [];
  let answers: AnswersByMethod = {};
  try {
    for (const contender of context.contenders) {
      if (contender.isForHeadlines && !scenario.isHeadline) continue;
      showProgress(`${label}: ${contender.name} starts`);
      const entry = await takeSeat(context, scenario, contender, timing, answers);
      if (!entry) continue;
      entries.push(entry);
      const recorded = await entry.seat.check(entry.shares);
      if (contender.name === "plant-store") answers = recorded;
      await entry.seat.drive(entry.shares, toLoad(scenario, timing.warmUpSeconds));
      await entry.seat.rest();
    }
    for (let round = 1; round <= timing.rounds; round++) {
      for (const { seat, shares, rounds } of entries) {
        showProgress(`${label}: round ${round} of ${timing.rounds}, ${seat.contender.name}`);
        await seat.wake();
        rounds.push(await seat.drive(shares, toLoad(scenario, timing.roundSeconds)));
        await seat.rest();
      }
    }
  } finally {
    for (const { seat } of entries) {
      await seat.child.stop();
      context.workspace.discard(seat.directory);
    }
  }
  return entries.map(({ seat, rounds }) => ({
    scenario: scenario.name,
    title: scenario.title,
    connections: scenario.connections,
    contender: seat.contender.name,
    median: medianRound(rounds),
    rounds,
  }));
}

/** Absent if the contender has nothing of the kind. */
async function takeSeat(
  context: BenchContext,
  scenario: Scenario,
  contender: Contender,
  timing: Timing,
  answers: AnswersByMethod,
): Promise<Entry | undefined> {
  const plants = plantsFor(scenario, contender, timing);
  const { directory, credential } = await context.templates.copy(contender);
  const shares: Share[] = [];
  for (const { action, weight } of scenario.mix) {
    const described = contender.describeAction(action, credential, plants);
    if (!described) return undefined;
    shares.push({ action: described, weight });
  }
  contender.seed(directory, plants);
  if (contender.isEcho) writeAnswers(directory, answers);
  return { seat: await Seat.start(contender, directory), shares, rounds: [] };
}

function plantsFor(scenario: Scenario, contender: Contender, timing: Timing): number {
  if (!scenario.mix.some((part) => part.action === "delete")) return scenario.plants;
  if (contender.isEcho) return Number.MAX_SAFE_INTEGER;
  const seconds = timing.warmUpSeconds + timing.rounds * timing.roundSeconds;
  return scenario.plants + seconds * contender.deletesPerSecondMax;
}

function toLoad(scenario: Scenario, durationSeconds: number) {
  return { connections: scenario.connections, durationSeconds };
}
