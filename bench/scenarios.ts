/** What the contenders are asked to do, and how long each of it is measured. */
import {
  type ActionName,
  bulkPlants,
  type ContenderName,
  contenderNames,
  type Engine,
  type Size,
} from "./contenders/contender.ts";

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly engine: Engine;
  readonly connections: number;
  readonly size: Size;
  readonly mix: readonly { readonly action: ActionName; readonly weight: number }[];
  /** Measured in more rounds, and part of a quick run. */
  readonly isHeadline: boolean;
  /** Takes turns with this one, because their ratio is a target. */
  readonly beside?: string;
  /** For responses that take long. */
  readonly roundSecondsMin?: number;
  /** Absent: all that have the operation. */
  readonly contenders?: readonly ContenderName[];
}

export interface Timing {
  readonly warmUpSeconds: number;
  readonly roundSeconds: number;
  readonly headlineRounds: number;
  readonly otherRounds: number;
  readonly memoryCreates: number;
  readonly memoryConnections: number;
  readonly startRounds: number;
}

/** Up to 20 minutes with another version beside. */
export const fullTiming: Timing = {
  warmUpSeconds: 1,
  roundSeconds: 2,
  headlineRounds: 5,
  otherRounds: 3,
  memoryCreates: 1_000_000,
  memoryConnections: 5_000,
  startRounds: 7,
};

/** Headlines only, under 2 minutes: shows that everything runs, not how fast. */
export const quickTiming: Timing = {
  warmUpSeconds: 1,
  roundSeconds: 1,
  headlineRounds: 1,
  otherRounds: 1,
  memoryCreates: 20_000,
  memoryConnections: 1_000,
  startRounds: 3,
};

const garden = { gardens: 1, plants: 1_000 };
/** More lists than the 8 MiB of the response cache hold. */
const largeGarden = { gardens: 1, plants: 100_000 };
const searchedGarden = { gardens: 1, plants: 20_000 };
const deletedGarden = { gardens: 1, plants: bulkPlants, perNumber: bulkPlants };
const hugeGarden = { gardens: 1, plants: 10_000_000 };
const manyGardens = { gardens: 100_000, plants: 2_000_000 };
const someGardens = { gardens: 64, plants: 64 * 20 };

const ownOnly: readonly ContenderName[] = ["plant-store"];
const versions: readonly ContenderName[] = ["plant-store", "previous"];
const builds: readonly ContenderName[] = ["plant-store", "one-thread", "previous"];

export const scenarios: readonly Scenario[] = [
  headline("list", "list 20, first page: ours is cached", "list"),
  { ...plain("list-anywhere", "list 20 anywhere, not cached", "list-anywhere"), size: largeGarden },
  headline("create-key", "create with a time-ordered key", "create-key7"),
  { ...headline("create", "create without a key", "create"), beside: "create-key" },
  {
    ...plain("create-random-key", "create with a random key", "create-key4"),
    contenders: versions,
  },
  headline("delete", "delete", "delete"),
  plain("put", "put", "put"),
  mixed(plain("mix", "90 % list 20, 10 % create", "list")),
  {
    ...plain("bulk", "bulk of 1,000, with a key: plants/s", "bulk"),
    connections: 4,
    roundSecondsMin: 3,
    contenders: builds,
  },
  bulkDelete("bulk-delete"),
  search("search"),
  tags("tags"),
  {
    ...plain("list-all", "list all of 100,000", "list-all"),
    connections: 8,
    size: largeGarden,
    roundSecondsMin: 4,
  },
  alone({
    ...plain("list-alone", "list 20 anywhere, not cached", "list-anywhere"),
    size: largeGarden,
  }),
  alone(plain("create-alone", "create without a key", "create")),
  {
    ...plain("list-huge", "list 20 anywhere in 10,000,000 plants", "list-anywhere"),
    size: hugeGarden,
    contenders: ownOnly,
  },
  {
    ...plain("create-huge", "create with a key beside 10,000,000 plants", "create-key7"),
    size: hugeGarden,
    contenders: ownOnly,
  },
  {
    ...plain("list-gardens", "list 20, 100,000 gardens in turn", "list"),
    size: manyGardens,
    contenders: ownOnly,
  },
  {
    ...plain("create-gardens", "create with a key, 100,000 gardens in turn", "create-key7"),
    size: manyGardens,
    contenders: ownOnly,
  },
  onPostgres(headline("postgres-list", "list 20", "list")),
  onPostgres(headline("postgres-create-key", "create with a time-ordered key", "create-key7")),
  {
    ...onPostgres(headline("postgres-create", "create without a key", "create")),
    beside: "postgres-create-key",
  },
  onPostgres(plain("postgres-create-random-key", "create with a random key", "create-key4")),
  onPostgres(plain("postgres-delete", "delete", "delete")),
  onPostgres(plain("postgres-put", "put", "put")),
  onPostgres(mixed(plain("postgres-mix", "90 % list 20, 10 % create", "list"))),
  {
    ...onPostgres(plain("postgres-bulk", "bulk of 1,000, with a key: plants/s", "bulk")),
    connections: 4,
    roundSecondsMin: 3,
  },
  { ...onPostgres(bulkDelete("postgres-bulk-delete")), size: deletedGarden },
  { ...onPostgres(search("postgres-search")), size: searchedGarden },
  { ...onPostgres(tags("postgres-tags")), size: largeGarden },
];

/** The other measurements. */
export const partNames = ["start", "memory"] as const;
export type PartName = (typeof partNames)[number];

function plain(name: string, title: string, action: ActionName): Scenario {
  return {
    name,
    title,
    engine: "sqlite",
    connections: 64,
    size: garden,
    mix: [{ action, weight: 1 }],
    isHeadline: false,
  };
}

function bulkDelete(name: string): Scenario {
  return {
    ...plain(name, "delete of 1,000 at once: plants/s", "bulk-delete"),
    connections: 4,
    size: deletedGarden,
    roundSecondsMin: 3,
    contenders: ownOnly,
  };
}

/** Finds nothing, so it looks at all of them. */
function search(name: string): Scenario {
  const title = "search in 20,000 plants";
  return {
    ...plain(name, title, "search"),
    connections: 8,
    size: searchedGarden,
    contenders: ownOnly,
  };
}

function tags(name: string): Scenario {
  const title = "count 100,000 plants by tag, not cached";
  return { ...plain(name, title, "tags"), connections: 8, size: largeGarden, contenders: ownOnly };
}

function headline(name: string, title: string, action: ActionName): Scenario {
  return { ...plain(name, title, action), isHeadline: true };
}

function mixed(scenario: Scenario): Scenario {
  return {
    ...scenario,
    mix: [
      { action: "list", weight: 9 },
      { action: "create", weight: 1 },
    ],
  };
}

/** Without others, no write can share a commit, and a second thread has nothing to do. */
function alone(scenario: Scenario): Scenario {
  return {
    ...scenario,
    title: `one connection: ${scenario.title}`,
    connections: 1,
    contenders: contenderNames.filter((name) => !["one-thread", "without-events"].includes(name)),
  };
}

function onPostgres(scenario: Scenario): Scenario {
  return {
    ...scenario,
    title: `PostgreSQL: ${scenario.title}`,
    engine: "postgres",
    size: someGardens,
  };
}
