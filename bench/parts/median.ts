/** The middle of what several rounds gave. */
import type { Round } from "./seat.ts";

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Each figure by itself; of faults, all. */
export function medianRound(rounds: readonly Round[]): Round {
  const middle = (pick: (round: Round) => number) => medianOf(rounds.map(pick));
  return {
    answers: middle((round) => round.answers),
    answersPerSecond: middle((round) => round.answersPerSecond),
    p50Ms: middle((round) => round.p50Ms),
    p99Ms: middle((round) => round.p99Ms),
    maxMs: middle((round) => round.maxMs),
    faults: rounds.reduce((sum, round) => sum + round.faults, 0),
    usedMost: 0,
    loadCpuSeconds: middle((round) => round.loadCpuSeconds),
    othersCpuShare: middle((round) => round.othersCpuShare),
    cpuShare: middle((round) => round.cpuShare),
    cpuMicrosecondsPerAnswer: middle((round) => round.cpuMicrosecondsPerAnswer),
    residentMegabytes: middle((round) => round.residentMegabytes),
  };
}
