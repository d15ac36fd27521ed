/** What every contender is asked to do, and how much of it at a time. */
import type { ActionName } from "./contenders/contender.ts";

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly connections: number;
  readonly mix: readonly { readonly action: ActionName; readonly weight: number }[];
  /** Plants that are there before; deletes get as many as they may need. */
  readonly plants: number;
  /** For answers that take so long that a usual round would see too few of them. */
  readonly roundSecondsMin?: number;
  /** Measured in more rounds, part of the quick run, and drawn in the chart. */
  readonly isHeadline: boolean;
}

const usualConnections = 64;
const usualPlants = 1_000;
/** One answer is several megabytes long, so a few connections are plenty. */
const longListConnections = 8;

export const scenarios: readonly Scenario[] = [
  headline("list-20", "list 20", "list-20"),
  headline("create", "create, durable", "create"),
  headline("delete", "delete, durable", "delete"),
  headline("refused-401", "refused (401)", "refused-401"),
  plain("list-1", "list 1", "list-1"),
  {
    ...plain("mix", "90 % list 20, 10 % create", "list-20"),
    mix: [
      { action: "list-20", weight: 9 },
      { action: "create", weight: 1 },
    ],
  },
  plain("refused-400", "refused (400, bad query)", "refused-400"),
  plain("refused-404", "refused (404, no such plant)", "refused-404"),
  {
    ...plain("list-all", "list all of 100,000", "list-all"),
    connections: longListConnections,
    plants: 100_000,
    roundSecondsMin: 4,
  },
  { ...plain("list-20-at-1", "list 20", "list-20"), connections: 1 },
  { ...plain("list-20-at-512", "list 20", "list-20"), connections: 512 },
  { ...plain("create-at-1", "create, durable", "create"), connections: 1 },
  { ...plain("create-at-512", "create, durable", "create"), connections: 512 },
];

function plain(name: string, title: string, action: ActionName): Scenario {
  const mix = [{ action, weight: 1 }];
  return {
    name,
    title,
    connections: usualConnections,
    mix,
    plants: usualPlants,
    isHeadline: false,
  };
}

function headline(name: string, title: string, action: ActionName): Scenario {
  return { ...plain(name, title, action), isHeadline: true };
}
