/** Two instances on one real PostgreSQL: Plant Store against one INSERT a request. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  makeDatabase,
  type PostgresServer,
  startPostgres,
  type TestDatabase,
} from "../../test/postgres-server.ts";
import {
  type OnPostgres,
  oneInsertOn,
  plantStoreOn,
  plantsBefore,
  seedDatabase,
} from "../contenders/on-postgres.ts";
import { describePlantAction } from "../contenders/plants-over-http.ts";
import type { Share } from "../load/action.ts";
import { showProgress } from "../output.ts";
import { readUsage } from "../process/usage.ts";
import type { BenchContext } from "./bench-context.ts";
import { rotateTokens } from "./growth-actions.ts";
import { medianOf } from "./median.ts";
import { measurePool, type PoolResult } from "./postgres-pool.ts";
import { type Round, Seat } from "./seat.ts";

export interface PairRound {
  readonly answersPerSecond: number;
  /** Of the instance where it is worse. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly faults: number;
  /**
   * What an answer took of the processors: both instances, the database, and the making of the
   * load.
   */
  readonly instancesMicroseconds: number;
  readonly databaseMicroseconds: number;
  readonly loadMicroseconds: number;
  readonly othersCpuShare: number;
}

export interface PostgresRow {
  readonly trial: string;
  readonly contender: OnPostgres["name"];
  readonly median: PairRound;
  readonly rounds: readonly PairRound[];
}

export interface PostgresResult {
  readonly version: string;
  readonly http: readonly PostgresRow[];
  readonly pool: readonly PoolResult[];
}

const instances = 2;
export const pairConnections = 64;
export const pairGardens = 64;
export const trialNames = {
  createInMany: `create, ${pairGardens} gardens`,
  createInOne: "create, one garden",
  list: `list 20, ${pairGardens} gardens`,
} as const;

interface Entry {
  readonly pair: readonly Seat<OnPostgres>[];
  readonly trials: ReadonlyMap<string, readonly Share[]>;
}

/** The server keeps its defaults, so a commit is on the disk before it is answered. */
export async function measurePostgres(context: BenchContext): Promise<PostgresResult> {
  showProgress("postgres: starts");
  const server = await startPostgres();
  const entries: Entry[] = [];
  try {
    for (const makeContender of [plantStoreOn, oneInsertOn]) {
      const database = await makeDatabase(server);
      entries.push(await takeSeats(context, makeContender(database), database));
    }
    const http: PostgresRow[] = [];
    for (const trial of entries[0]?.trials.keys() ?? []) {
      http.push(...(await runTrial(context, server, entries, trial)));
    }
    const pool = await measurePool(context.plan.postgres, await makeDatabase(server));
    return { version: await readVersion(server), http, pool };
  } finally {
    for (const { pair } of entries) {
      for (const seat of pair) {
        await seat.child.stop();
        context.workspace.discard(seat.directory);
      }
    }
    await server.stop();
  }
}

async function readVersion(server: PostgresServer): Promise<string> {
  const database = await makeDatabase(server);
  const [row] = await database.query("SHOW server_version");
  return String(row?.server_version);
}

async function takeSeats(
  context: BenchContext,
  contender: OnPostgres,
  database: TestDatabase,
): Promise<Entry> {
  const tokens = await seedDatabase(database, pairGardens);
  const directory = context.workspace.makeDirectory(`${contender.name}-tokens`);
  const tokensPath = join(directory, "tokens.txt");
  writeFileSync(tokensPath, `${tokens.join("\n")}\n`);
  const rotating = rotateTokens(tokensPath);
  const create = describePlantAction("create", tokens[0] ?? "", plantsBefore);
  const trials = new Map<string, readonly Share[]>([
    [trialNames.createInMany, rotating.get("create") ?? []],
    [trialNames.createInOne, [{ action: create, weight: 1 }]],
    [trialNames.list, rotating.get("list 20") ?? []],
  ]);
  const pair: Seat<OnPostgres>[] = [];
  for (let index = 0; index < instances; index++) {
    const place = context.workspace.makeDirectory(contender.name);
    const seat = await Seat.start(contender, place);
    pair.push(seat);
    for (const shares of trials.values()) await seat.check(shares);
    await seat.rest();
  }
  return { pair, trials };
}

async function runTrial(
  context: BenchContext,
  server: PostgresServer,
  entries: readonly Entry[],
  trial: string,
): Promise<PostgresRow[]> {
  const { rounds, roundSeconds, warmUpSeconds } = context.plan.postgres;
  const measured = entries.map((): PairRound[] => []);
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const [index, { pair, trials }] of entries.entries()) {
      showProgress(`postgres: ${trial}, round ${round} of ${rounds}, ${nameOf(pair)}`);
      for (const seat of pair) await seat.wake();
      const seconds = round === 0 ? warmUpSeconds : roundSeconds;
      const figures = await drivePair(server, pair, trials.get(trial) ?? [], seconds);
      if (round > 0) measured[index]?.push(figures);
      for (const seat of pair) await seat.rest();
    }
  }
  return entries.map(({ pair }, index) => {
    const own = measured[index] ?? [];
    return { trial, contender: nameOf(pair), median: medianPair(own), rounds: own };
  });
}

function nameOf([seat]: readonly Seat<OnPostgres>[]): OnPostgres["name"] {
  return seat?.contender.name ?? "plant-store";
}

/** Each instance gets its half of the connections, all at the same time. */
async function drivePair(
  server: PostgresServer,
  pair: readonly Seat<OnPostgres>[],
  shares: readonly Share[],
  durationSeconds: number,
): Promise<PairRound> {
  const databaseBefore = readUsage(server.pid).cpuSeconds;
  const startedAtMs = performance.now();
  const connections = pairConnections / pair.length;
  const halves = await Promise.all(
    pair.map((seat) => seat.drive(shares, { connections, durationSeconds })),
  );
  const seconds = (performance.now() - startedAtMs) / 1000;
  const databaseSeconds = readUsage(server.pid).cpuSeconds - databaseBefore;
  const sum = (pick: (half: Round) => number) => halves.map(pick).reduce((a, b) => a + b, 0);
  const worst = (pick: (half: Round) => number) => Math.max(...halves.map(pick));
  // To one half, the other half and the database are others too.
  const [first, ...rest] = halves;
  const known = rest.reduce(
    (share, half) => share + half.cpuShare + half.loadCpuSeconds / seconds,
    databaseSeconds / seconds,
  );
  const microsecondsEach = (cpuSeconds: number) => (cpuSeconds * 1e6) / sum((half) => half.answers);
  return {
    answersPerSecond: sum((half) => half.answersPerSecond),
    p50Ms: worst((half) => half.p50Ms),
    p99Ms: worst((half) => half.p99Ms),
    faults: sum((half) => half.faults),
    instancesMicroseconds: microsecondsEach(sum((half) => half.cpuShare) * seconds),
    databaseMicroseconds: microsecondsEach(databaseSeconds),
    loadMicroseconds: microsecondsEach(sum((half) => half.loadCpuSeconds)),
    othersCpuShare: Math.max(0, (first?.othersCpuShare ?? 0) - known),
  };
}

/** Each figure by itself; of faults, all. */
function medianPair(rounds: readonly PairRound[]): PairRound {
  const middle = (pick: (round: PairRound) => number) => medianOf(rounds.map(pick));
  return {
    answersPerSecond: middle((round) => round.answersPerSecond),
    p50Ms: middle((round) => round.p50Ms),
    p99Ms: middle((round) => round.p99Ms),
    faults: rounds.reduce((total, round) => total + round.faults, 0),
    instancesMicroseconds: middle((round) => round.instancesMicroseconds),
    databaseMicroseconds: middle((round) => round.databaseMicroseconds),
    loadMicroseconds: middle((round) => round.loadMicroseconds),
    othersCpuShare: middle((round) => round.othersCpuShare),
  };
}
