/** The figures that the project promises, and whether this run shows them. */
import type { ContenderName } from "../contenders/contender.ts";
import type { GrowthAction } from "../parts/growth-actions.ts";
import { trialNames } from "../parts/postgres.ts";
import type { SlowDiskTrial } from "../parts/slow-disk.ts";
import type { Results } from "./results.ts";

export interface Promised {
  readonly figure: string;
  readonly target: string;
  readonly measured: string;
  /** Absent where it was not measured. */
  readonly isMet: boolean | undefined;
}

interface Target {
  readonly scenario: string;
  readonly title: string;
  readonly against: readonly (readonly [ContenderName, number])[];
}

const sideBySide: readonly Target[] = [
  {
    scenario: "list-20",
    title: "list 20",
    against: [
      ["bare", 0.8],
      ["hono", 3],
      ["fastify", 5],
      ["pocketbase", 50],
    ],
  },
  {
    scenario: "create",
    title: "create, durable",
    against: [
      ["bare", 0.7],
      ["hono", 4],
      ["fastify", 8],
      ["pocketbase", 50],
    ],
  },
  {
    scenario: "delete",
    title: "delete, durable",
    against: [
      ["bare", 0.6],
      ["fastify", 6],
    ],
  },
  {
    scenario: "mix",
    title: "90 % list 20, 10 % create",
    against: [["bare", 0.72]],
  },
  {
    scenario: "refused-401",
    title: "refused (401)",
    against: [
      ["bare", 0.8],
      ["fastify", 3],
    ],
  },
];

const growthTimesMax = { plants: 1.25, gardens: 2 };
const residentMegabytesMax = 120;
const startTimesMax = 6;
const slowDiskTimesMin = 20;
const readerTimesMax = 2;
const postgresTimesMin = {
  [trialNames.createInMany]: 3.5,
  [trialNames.createInOne]: 3,
  [trialNames.list]: 2,
};
const wholePlants = 10_000_000;
const wholeGardens = 100_000;
const wholeCreates = 1_000_000;
const wholeConnections = 5_000;

export function listPromises(results: Results): Promised[] {
  return [
    ...sideBySide.flatMap((target) => compareContenders(results, target)),
    growth(results, "plants", wholePlants, "list 10"),
    growth(results, "plants", wholePlants, "create"),
    growth(results, "gardens", wholeGardens, "list 20"),
    growth(results, "gardens", wholeGardens, "create"),
    slowCreates(results),
    readersBesideWriters(results, "lists", "64 busy readers"),
    readersBesideWriters(results, "paced lists", "16 readers with pauses"),
    ...memory(results),
    start(results),
    ...postgres(results),
  ];
}

/** Absent where either was not measured or gave no answer. */
export function ratioTo(
  results: Results,
  scenario: string,
  contender: ContenderName,
): number | undefined {
  const rate = (name: ContenderName) =>
    results.scenarios.find((row) => row.scenario === scenario && row.contender === name)?.median
      .answersPerSecond;
  const own = rate("plant-store");
  const other = rate(contender);
  return own && other ? own / other : undefined;
}

function compareContenders(results: Results, target: Target): Promised[] {
  return target.against.map(([contender, least]) => {
    const figure = `${target.title}, 64 connections, vs ${contender}`;
    return atLeast(figure, least, ratioTo(results, target.scenario, contender));
  });
}

function growth(
  results: Results,
  of: "plants" | "gardens",
  size: number,
  action: GrowthAction,
): Promised {
  const row = results.growth.find(
    (entry) => entry.of === of && entry.size === size && entry.action === action,
  );
  const smallest = of === "plants" ? "10" : "one";
  const figure = `${action}: ${size.toLocaleString("en")} ${of} against ${smallest}`;
  return atMost(figure, growthTimesMax[of], row?.costRatio);
}

function slowCreates(results: Results): Promised {
  const rate = (contender: ContenderName) =>
    findSlow(results, contender, "creates")?.answersPerSecond;
  const own = rate("plant-store");
  const other = rate("fastify");
  const figure = "5 ms fsync, 256 connections creating, vs one commit a request (fastify)";
  return atLeast(figure, slowDiskTimesMin, own && other ? own / other : undefined);
}

function readersBesideWriters(
  results: Results,
  kind: "lists" | "paced lists",
  readers: string,
): Promised {
  const alone = findSlow(results, "plant-store", `${kind} alone`)?.p99Ms;
  const beside = findSlow(results, "plant-store", `${kind} beside writers`)?.p99Ms;
  const figure = `5 ms fsync, p99 of a list beside 256 writers vs without (${readers})`;
  return atMost(figure, readerTimesMax, alone && beside ? beside / alone : undefined);
}

function findSlow(results: Results, contender: ContenderName, trial: SlowDiskTrial) {
  return results.slowDisk.find((row) => row.contender === contender && row.trial === trial)?.median;
}

function memory({ memory: found }: Results): Promised[] {
  const isWhole = found && found.creates >= wholeCreates;
  const isHeld = isWhole && found.idleConnections >= wholeConnections;
  const row = (figure: string, megabytes: number | undefined): Promised => ({
    figure,
    target: `< ${residentMegabytesMax} MB`,
    measured: megabytes === undefined ? "not measured" : `${megabytes.toFixed(0)} MB`,
    isMet: megabytes === undefined ? undefined : megabytes < residentMegabytesMax,
  });
  return [
    row("resident after a million creates", isWhole ? found.afterCreatesMegabytes : undefined),
    row("resident with 5,000 idle connections", isHeld ? found.idleMegabytes : undefined),
  ];
}

function start({ start: found }: Results): Promised {
  const own = found.find((row) => row.contender === "plant-store")?.medianMs;
  const limit = found.find((row) => row.contender === "bare")?.medianMs;
  return atMost(
    "start to first answer, vs bare",
    startTimesMax,
    own && limit ? own / limit : undefined,
  );
}

/** Absent where it was not measured. */
export function postgresRatio({ postgres: found }: Results, trial: string): number | undefined {
  const rate = (contender: string) =>
    found?.http.find((row) => row.trial === trial && row.contender === contender)?.median
      .answersPerSecond;
  const own = rate("plant-store");
  const other = rate("one-insert");
  return own && other ? own / other : undefined;
}

function postgres(results: Results): Promised[] {
  return Object.entries(postgresTimesMin).map(([trial, least]) =>
    atLeast(
      `PostgreSQL, two instances, 64 connections: ${trial}, vs one insert a request`,
      least,
      postgresRatio(results, trial),
    ),
  );
}

function atLeast(figure: string, least: number, ratio: number | undefined): Promised {
  return {
    figure,
    target: `≥ ${least} ×`,
    measured: times(ratio),
    isMet: ratio === undefined ? undefined : ratio >= least,
  };
}

function atMost(figure: string, most: number, ratio: number | undefined): Promised {
  return {
    figure,
    target: `≤ ${most} ×`,
    measured: times(ratio),
    isMet: ratio === undefined ? undefined : ratio <= most,
  };
}

function times(ratio: number | undefined): string {
  return ratio === undefined ? "not measured" : `${ratio.toFixed(ratio < 10 ? 2 : 0)} ×`;
}
