/**
 * Which shard a garden lies on. A garden's hash names a bucket for ever, and a table says where
 * each bucket lies now, as Citus does with shards, YugabyteDB with tablets and CockroachDB with
 * ranges.
 */
import type { Gardens } from "./gardens.ts";
import { largest, sum } from "./gardens.ts";

export interface Placement {
  readonly shards: number;
  /** The shard of each bucket. */
  readonly shardOfBucket: readonly number[];
}

/** Buckets are equal parts of the range of hashes. */
export function bucketOf(hash: number, buckets: number): number {
  return Math.floor((hash / 2 ** 32) * buckets);
}

/** What the gardens of each bucket weigh together. */
export function weighBuckets(
  gardens: Gardens,
  weights: ArrayLike<number>,
  buckets: number,
): Float64Array {
  const weighed = new Float64Array(buckets);
  for (let garden = 0; garden < gardens.count; garden++) {
    const bucket = bucketOf(gardens.hashes[garden] ?? 0, buckets);
    weighed[bucket] = (weighed[bucket] ?? 0) + (weights[garden] ?? 0);
  }
  return weighed;
}

/** The same number of buckets for each shard, whatever they weigh. */
export function spreadByCount(buckets: number, shards: number): Placement {
  return {
    shards,
    shardOfBucket: Array.from({ length: buckets }, (_, bucket) => bucket % shards),
  };
}

/** The heaviest bucket first, each to the shard that carries least. */
export function spreadByWeight(weights: Float64Array, shards: number): Placement {
  const shardOfBucket: number[] = Array(weights.length).fill(0);
  const loads: number[] = Array(shards).fill(0);
  for (const bucket of heaviestFirst(weights, weights.keys())) {
    const shard = lightest(loads);
    shardOfBucket[bucket] = shard;
    loads[shard] = (loads[shard] ?? 0) + (weights[bucket] ?? 0);
  }
  return { shards, shardOfBucket };
}

/** Moves only what the new shard needs to carry its share, and nothing between the old ones. */
export function addShard(placement: Placement, weights: Float64Array): Placement {
  const shards = placement.shards + 1;
  const shardOfBucket = [...placement.shardOfBucket];
  const loads = [...loadsOf(placement, weights), 0];
  const added = placement.shards;
  const fairLoad = sum(loads) / shards;
  for (;;) {
    const moved = heaviestFirst(loads, loads.keys())
      .filter((shard) => shard !== added && (loads[shard] ?? 0) > fairLoad)
      .map((shard) => heaviestThatFits(shard))
      .find((bucket) => bucket !== undefined);
    if (moved === undefined) return { shards, shardOfBucket };
    const weight = weights[moved] ?? 0;
    const from = shardOfBucket[moved] ?? 0;
    loads[from] = (loads[from] ?? 0) - weight;
    loads[added] = (loads[added] ?? 0) + weight;
    shardOfBucket[moved] = added;
  }

  function heaviestThatFits(shard: number): number | undefined {
    const room = fairLoad - (loads[added] ?? 0);
    let found: number | undefined;
    for (const [bucket, weight] of weights.entries()) {
      if (shardOfBucket[bucket] !== shard || weight > room) continue;
      if (found === undefined || weight > (weights[found] ?? 0)) found = bucket;
    }
    return found;
  }
}

/** Each bucket of the lost shard goes to the one that then carries least. */
export function removeShard(placement: Placement, lost: number, weights: Float64Array): Placement {
  const shardOfBucket = [...placement.shardOfBucket];
  const loads = loadsOf(placement, weights);
  loads[lost] = Number.POSITIVE_INFINITY;
  const orphans = [...shardOfBucket.keys()].filter((bucket) => shardOfBucket[bucket] === lost);
  for (const bucket of heaviestFirst(weights, orphans)) {
    const shard = lightest(loads);
    shardOfBucket[bucket] = shard;
    loads[shard] = (loads[shard] ?? 0) + (weights[bucket] ?? 0);
  }
  return { shards: placement.shards, shardOfBucket };
}

export function loadsOf(placement: Placement, weights: Float64Array): number[] {
  const loads: number[] = Array(placement.shards).fill(0);
  for (const [bucket, shard] of placement.shardOfBucket.entries()) {
    loads[shard] = (loads[shard] ?? 0) + (weights[bucket] ?? 0);
  }
  return loads;
}

/** How much more than the mean the fullest shard carries: 1 is perfect. */
export function imbalanceOf(loads: readonly number[]): number {
  return largest(loads) / (sum(loads) / loads.length);
}

/** Which share of the weight lies elsewhere afterwards. */
export function shareMoved(before: Placement, after: Placement, weights: Float64Array): number {
  const moved = weights.filter(
    (_, bucket) => before.shardOfBucket[bucket] !== after.shardOfBucket[bucket],
  );
  return sum(moved) / sum(weights);
}

function heaviestFirst(weights: ArrayLike<number>, indexes: Iterable<number>): number[] {
  return [...indexes].sort((left, right) => (weights[right] ?? 0) - (weights[left] ?? 0));
}

function lightest(loads: readonly number[]): number {
  return loads.reduce((found, load, shard) => (load < (loads[found] ?? 0) ? shard : found), 0);
}
