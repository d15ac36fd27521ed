/**
 * How writes gather into commits when gardens lie on many shards: clients that write without a
 * pause, instances that group what waits, connections that carry one commit each, and a lock a
 * garden. It knows no database, only how long a commit takes and what it costs.
 */
import type { Gardens } from "./gardens.ts";
import { createRandom } from "./random.ts";

/** Which writes may share a commit, by the garden and the shard that it lies on. */
export interface Grouping {
  readonly name: string;
  readonly laneOf: (garden: number, shard: number, write: number) => number;
  /** Whether the load balancer sends all requests for a garden to the same instance. */
  readonly isRouted?: boolean;
}

export const groupings: readonly Grouping[] = [
  { name: "one write a commit", laneOf: (_garden, _shard, write) => write },
  { name: "one group an instance", laneOf: () => 0 },
  { name: "16 lanes by garden", laneOf: (garden) => garden % 16 },
  { name: "a lane a shard", laneOf: (_garden, shard) => shard },
  { name: "a lane a garden", laneOf: (garden) => garden },
  { name: "a lane a shard, routed", laneOf: (_garden, shard) => shard, isRouted: true },
  { name: "a lane a garden, routed", laneOf: (garden) => garden, isRouted: true },
];

export interface CommitOptions {
  readonly seed: number;
  readonly writes: number;
  readonly instances: number;
  readonly clientsPerInstance: number;
  readonly connectionsPerInstance: number;
}

/**
 * Of a commit. The times are assumed: servers in one region, a standby in another zone. The costs
 * are rounded from what postgres-figures.ts measured: a transaction costs about 36 times what a row
 * adds to it, and one in two phases 1.3 times a plain one.
 */
export const commitModel = {
  statements: 4,
  roundTripMs: 0.5,
  durableMs: 1,
  rowMs: 0.02,
  transactionCost: 36,
  rowCost: 1,
  twoPhases: 2,
  twoPhaseCost: 1.3,
} as const;

export interface CommitFigures {
  readonly writesPerSecond: number;
  readonly medianMs: number;
  readonly slowestHundredthMs: number;
  readonly writesPerCommit: number;
  readonly shardsPerCommit: number;
  readonly shareOverShards: number;
  /** What the databases spend on a write, against a write that has a commit to itself. */
  readonly costPerWrite: number;
}

interface Write {
  readonly garden: number;
  readonly sinceMs: number;
}

interface Commit {
  readonly instance: number;
  readonly lane: number;
  readonly writes: readonly Write[];
  readonly endsAtMs: number;
}

interface Instance {
  /** Writes that wait, by lane; a lane that commits or waits for a connection is in here. */
  readonly waiting: Map<number, Write[]>;
  readonly ready: number[];
  connections: number;
}

export function simulateCommits(
  gardens: Gardens,
  shardOfGarden: (garden: number) => number,
  grouping: Grouping,
  options: CommitOptions,
): CommitFigures {
  const model = commitModel;
  const drawGarden = createDraw(gardens, options.seed);
  const instances = Array.from(
    { length: options.instances },
    (): Instance => ({
      waiting: new Map(),
      ready: [],
      connections: options.connectionsPerInstance,
    }),
  );
  const lockedUntilMs = new Map<number, number>();
  const running: Commit[] = [];
  const latencies: number[] = [];
  let started = 0;
  let nowMs = 0;
  let commits = 0;
  let rows = 0;
  let participants = 0;
  let overShards = 0;
  let cost = 0;

  /** A client writes again as soon as it is answered, through the same instance unless routed. */
  function submit(client: number): void {
    const garden = drawGarden();
    const index = grouping.isRouted ? garden % instances.length : client;
    const instance = instances[index] as Instance;
    const lane = grouping.laneOf(garden, shardOfGarden(garden), started++);
    const waiting = instance.waiting.get(lane);
    if (waiting) waiting.push({ garden, sinceMs: nowMs });
    else {
      instance.waiting.set(lane, [{ garden, sinceMs: nowMs }]);
      instance.ready.push(lane);
    }
  }

  function commitWhatIsReady(): void {
    for (const [index, instance] of instances.entries()) {
      while (instance.connections > 0 && instance.ready.length > 0) {
        const lane = instance.ready.shift() as number;
        instance.connections--;
        running.push(begin(index, lane, instance.waiting.get(lane) ?? []));
        instance.waiting.set(lane, []);
      }
    }
  }

  /** The locks of all its gardens are held from the moment that the last one is free. */
  function begin(instance: number, lane: number, writes: readonly Write[]): Commit {
    const rowsOfShard = new Map<number, number>();
    let startsAtMs = nowMs;
    for (const { garden } of writes) {
      const shard = shardOfGarden(garden);
      rowsOfShard.set(shard, (rowsOfShard.get(shard) ?? 0) + 1);
      startsAtMs = Math.max(startsAtMs, lockedUntilMs.get(garden) ?? 0);
    }
    const isOverShards = rowsOfShard.size > 1;
    const phases = isOverShards ? model.twoPhases : 1;
    const endsAtMs =
      startsAtMs +
      model.statements * model.roundTripMs +
      Math.max(...rowsOfShard.values()) * model.rowMs +
      phases * (model.roundTripMs + model.durableMs);
    for (const { garden } of writes) lockedUntilMs.set(garden, endsAtMs);
    commits++;
    rows += writes.length;
    participants += rowsOfShard.size;
    overShards += isOverShards ? 1 : 0;
    cost +=
      rowsOfShard.size * model.transactionCost * (isOverShards ? model.twoPhaseCost : 1) +
      writes.length * model.rowCost;
    return { instance, lane, writes, endsAtMs };
  }

  function finish({ instance: index, lane, writes, endsAtMs }: Commit): void {
    nowMs = endsAtMs;
    const instance = instances[index] as Instance;
    instance.connections++;
    if (instance.waiting.get(lane)?.length) instance.ready.push(lane);
    else instance.waiting.delete(lane);
    for (const { sinceMs } of writes) {
      latencies.push(nowMs - sinceMs);
      submit(index);
    }
  }

  for (const index of instances.keys()) {
    for (let client = 0; client < options.clientsPerInstance; client++) submit(index);
  }
  commitWhatIsReady();
  while (latencies.length < options.writes) {
    finish(takeEarliest(running));
    commitWhatIsReady();
  }

  const answered = latencies.length;
  latencies.sort((left, right) => left - right);
  return {
    writesPerSecond: (answered / nowMs) * 1000,
    medianMs: latencies[Math.floor(answered / 2)] ?? 0,
    slowestHundredthMs: latencies[Math.floor(answered * 0.99)] ?? 0,
    writesPerCommit: rows / commits,
    shardsPerCommit: participants / commits,
    shareOverShards: overShards / commits,
    costPerWrite: cost / rows / (model.transactionCost + model.rowCost),
  };
}

/** Draws gardens as often as their traffic says. */
function createDraw({ traffic }: Gardens, seed: number): () => number {
  const random = createRandom(seed);
  let total = 0;
  const upTo = traffic.map((share) => {
    total += share;
    return total;
  });
  return () => {
    const wanted = random() * total;
    let low = 0;
    let high = upTo.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((upTo[middle] ?? 0) > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

/** There are as many as connections at the most, too few for a heap to be worth its lines. */
function takeEarliest(running: Commit[]): Commit {
  let earliest = 0;
  for (const [index, { endsAtMs }] of running.entries()) {
    if (endsAtMs < (running[earliest]?.endsAtMs ?? 0)) earliest = index;
  }
  return running.splice(earliest, 1)[0] as Commit;
}
