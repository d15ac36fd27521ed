/**
 * The simulation of shards: nothing is lost, a seed decides everything, and balance keeps its
 * bounds.
 */
import { describe, expect, test } from "bun:test";
import { type CommitOptions, groupings, simulateCommits } from "./commits.ts";
import { assumptions, estimate } from "./estimate.ts";
import { largest, makeGardens, sum } from "./gardens.ts";
import {
  addShard,
  bucketOf,
  imbalanceOf,
  loadsOf,
  type Placement,
  removeShard,
  shareMoved,
  spreadByCount,
  spreadByWeight,
  weighBuckets,
} from "./placement.ts";
import { renderReport } from "./report.ts";

const shards = 16;
const buckets = 1_024;
const gardens = makeGardens({ seed: 7, gardens: 20_000, plants: 2e8, trafficExponent: 1 });
const plants = weighBuckets(gardens, gardens.plants, buckets);
const ones = new Float64Array(buckets).fill(1);

describe("gardens", () => {
  test("hold all plants and get all traffic", () => {
    expect(Math.abs(sum(gardens.plants) - 2e8)).toBeLessThan(gardens.count);
    expect(sum(gardens.traffic)).toBeCloseTo(1, 9);
  });

  test("are the same from the same seed and others from another", () => {
    const options = { gardens: 1_000, plants: 1e6, trafficExponent: 1 };
    expect(makeGardens({ ...options, seed: 3 })).toEqual(makeGardens({ ...options, seed: 3 }));
    expect(makeGardens({ ...options, seed: 3 }).plants).not.toEqual(
      makeGardens({ ...options, seed: 4 }).plants,
    );
  });

  test("get even traffic with exponent 0", () => {
    const even = makeGardens({ seed: 3, gardens: 1_000, plants: 1e6, trafficExponent: 0 });
    expect(largest(even.traffic)).toBeCloseTo(1 / 1_000, 12);
  });
});

describe("placement", () => {
  const placements: Readonly<Record<string, Placement>> = {
    "by count": spreadByCount(buckets, shards),
    "by plants": spreadByWeight(plants, shards),
  };

  test("has the first and the last hash in the first and the last bucket", () => {
    expect(bucketOf(0, buckets)).toBe(0);
    expect(bucketOf(2 ** 32 - 1, buckets)).toBe(buckets - 1);
  });

  for (const [name, placement] of Object.entries(placements)) {
    test(`${name} loses nothing when a shard is added, and moves only to it`, () => {
      const after = addShard(placement, name === "by count" ? ones : plants);
      expect(sum(loadsOf(after, plants))).toBe(sum(plants));
      for (const [bucket, shard] of after.shardOfBucket.entries()) {
        if (shard !== placement.shardOfBucket[bucket]) expect(shard).toBe(shards);
      }
    });

    test(`${name} loses nothing when a shard is lost, and moves only its buckets`, () => {
      for (let lost = 0; lost < shards; lost++) {
        const after = removeShard(placement, lost, plants);
        expect(sum(loadsOf(after, plants))).toBe(sum(plants));
        expect(after.shardOfBucket).not.toContain(lost);
        for (const [bucket, shard] of placement.shardOfBucket.entries()) {
          if (shard !== lost) expect(after.shardOfBucket[bucket]).toBe(shard);
        }
      }
    });
  }

  test("gives a new shard its fair share and no more", () => {
    const before = spreadByWeight(plants, shards);
    const moved = shareMoved(before, addShard(before, plants), plants);
    expect(moved).toBeLessThanOrEqual(1 / (shards + 1));
    expect(moved).toBeGreaterThan(0.95 / (shards + 1));
  });

  test("by weight exceeds the mean by at most the heaviest bucket", () => {
    const loads = loadsOf(spreadByWeight(plants, shards), plants);
    const mean = sum(plants) / shards;
    expect(largest(loads)).toBeLessThanOrEqual(mean + largest(plants));
    expect(imbalanceOf(loads)).toBeLessThan(
      imbalanceOf(loadsOf(spreadByCount(buckets, shards), plants)),
    );
  });
});

describe("commits", () => {
  const options: CommitOptions = {
    seed: 7,
    writes: 5_000,
    instances: 3,
    clientsPerInstance: 20,
    connectionsPerInstance: 4,
  };
  const shardOfGarden = (garden: number) => garden % shards;
  const run = (name: string) => {
    const grouping = groupings.find((each) => each.name === name);
    if (grouping === undefined) throw new Error(`There is no grouping "${name}".`);
    return simulateCommits(gardens, shardOfGarden, grouping, options);
  };

  test("are the same from the same seed", () => {
    for (const { name } of groupings) expect(run(name)).toEqual(run(name));
  });

  test("stay on one shard where a lane has one garden or one shard", () => {
    for (const name of ["one write a commit", "a lane a shard", "a lane a garden, routed"]) {
      expect(run(name)).toMatchObject({ shardsPerCommit: 1, shareOverShards: 0 });
    }
    expect(run("one group an instance").shareOverShards).toBeGreaterThan(0.99);
  });

  test("cost a write alone exactly one", () => {
    expect(run("one write a commit")).toMatchObject({ writesPerCommit: 1, costPerWrite: 1 });
    expect(run("a lane a shard").costPerWrite).toBeLessThan(1);
  });

  test("never break a garden's lock: one garden is written one commit at a time", () => {
    const alone = makeGardens({ seed: 1, gardens: 1, plants: 1, trafficExponent: 1 });
    const [single] = groupings;
    if (single === undefined) throw new Error("There is no grouping.");
    const { writesPerSecond } = simulateCommits(alone, () => 0, single, options);
    expect(writesPerSecond).toBeCloseTo(1_000 / 3.52, 0);
  });
});

describe("estimate", () => {
  test("grows with the plants", () => {
    const twice = estimate({ ...assumptions, plants: assumptions.plants * 2 });
    expect(twice.bytes - estimate().bytes).toBe(
      assumptions.plants * (assumptions.plantHeapBytes + assumptions.plantIndexBytes),
    );
  });
});

test("the report is the same from the same seed", () => {
  const options = { seed: 5, gardens: 2_000, shards: 4, writes: 500 };
  expect(renderReport(options)).toBe(renderReport(options));
  expect(renderReport(options)).not.toBe(renderReport({ ...options, seed: 6 }));
});
