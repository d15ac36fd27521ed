/** The tables of the simulation: each asks one question of the same gardens. */
import { renderTable } from "../report/text-table.ts";
import { type CommitOptions, groupings, simulateCommits } from "./commits.ts";
import { type Gardens, largest, sum } from "./gardens.ts";
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

/**
 * From one a shard to many: Citus advises 128 at the most, tablets and ranges come by the thousand.
 */
function bucketCounts(shards: number): readonly number[] {
  return [shards, 128, 1_024, 8_192];
}

const bucketsUsed = 1_024;

/** How evenly do gardens lie, by the number of buckets and by what the buckets are spread by? */
export function tableOfBalance(gardens: Gardens, shards: number): string {
  const rows = bucketCounts(shards).map((buckets) => {
    const plants = weighBuckets(gardens, gardens.plants, buckets);
    const traffic = weighBuckets(gardens, gardens.traffic, buckets);
    const placements = [
      spreadByCount(buckets, shards),
      spreadByWeight(plants, shards),
      spreadByWeight(traffic, shards),
    ];
    return [
      buckets.toLocaleString("en"),
      ...placements.map((placement) =>
        [plants, traffic]
          .map((weights) => times(imbalanceOf(loadsOf(placement, weights))))
          .join(", "),
      ),
    ];
  });
  return renderTable(["buckets", "spread by count", "by plants", "by traffic"], rows);
}

/** What moves when a shard is added? */
export function tableOfAdding(gardens: Gardens, shards: number): string {
  const plants = weighBuckets(gardens, gardens.plants, bucketsUsed);
  const ones = new Float64Array(bucketsUsed).fill(1);
  const byCount = spreadByCount(bucketsUsed, shards);
  const byPlants = spreadByWeight(plants, shards);
  const row = (name: string, before: Placement, after: Placement, weights: Float64Array) => [
    name,
    percent(shareMoved(before, after, weights)),
    times(imbalanceOf(loadsOf(before, weights))),
    times(imbalanceOf(loadsOf(after, weights))),
  ];
  return renderTable(
    [`${shards} → ${shards + 1} shards`, "plants moved", "fullest before", "fullest after"],
    [
      row(
        "hash modulo shards",
        placeByModulo(gardens, shards),
        placeByModulo(gardens, shards + 1),
        gardens.plants,
      ),
      row("buckets, by count", byCount, addShard(byCount, ones), plants),
      row("buckets, by plants", byPlants, addShard(byPlants, plants), plants),
    ],
  );
}

/** Without buckets: each garden is one of its own. */
function placeByModulo({ hashes }: Gardens, shards: number): Placement {
  return { shards, shardOfBucket: Array.from(hashes, (hash) => hash % shards) };
}

/** Who notices that a shard is gone, and what do the others carry if it stays away? */
export function tableOfLosing(gardens: Gardens, shards: number): string {
  const plants = weighBuckets(gardens, gardens.plants, bucketsUsed);
  const traffic = weighBuckets(gardens, gardens.traffic, bucketsUsed);
  const counts = weighBuckets(gardens, new Float64Array(gardens.count).fill(1), bucketsUsed);
  const placement = spreadByWeight(plants, shards);
  const loads = loadsOf(placement, traffic);
  const mean = sum(loads) / shards;
  const byTraffic = [...loads.keys()].sort(
    (left, right) => (loads[left] ?? 0) - (loads[right] ?? 0),
  );
  return renderTable(
    ["lost", "gardens", "plants", "requests", "busiest other", "spread", "one takes all"],
    ["quietest", "usual", "busiest"].map((name, third) => {
      const lost = byTraffic[Math.round((third / 2) * (shards - 1))] ?? 0;
      const others = loads.filter((_, shard) => shard !== lost);
      const shareLost = (weights: Float64Array) =>
        percent((loadsOf(placement, weights)[lost] ?? 0) / sum(weights));
      return [
        name,
        shareLost(counts),
        shareLost(plants),
        shareLost(traffic),
        times(largest(others) / mean),
        times(largest(loadsOf(removeShard(placement, lost, traffic), traffic)) / mean),
        times(Math.max(largest(others), Math.min(...others) + (loads[lost] ?? 0)) / mean),
      ];
    }),
  );
}

/** How far does adding shards help against the busiest garden, which lies on one of them? */
export function tableOfHotGarden(gardens: Gardens): string {
  const hottest = largest(gardens.traffic);
  return renderTable(
    ["shards", "a fair share", "the busiest garden", "busiest shard, by count", "by traffic"],
    [4, 16, 64, 256].map((shards) => {
      const traffic = weighBuckets(gardens, gardens.traffic, bucketsUsed);
      return [
        String(shards),
        percent(1 / shards),
        percent(hottest),
        times(imbalanceOf(loadsOf(spreadByCount(bucketsUsed, shards), traffic))),
        times(imbalanceOf(loadsOf(spreadByWeight(traffic, shards), traffic))),
      ];
    }),
  );
}

/** What do the ways of grouping writes cost? */
export function tableOfCommits(gardens: Gardens, shards: number, options: CommitOptions): string {
  const { shardOfBucket } = spreadByCount(bucketsUsed, shards);
  const shardOfGarden = (garden: number) =>
    shardOfBucket[bucketOf(gardens.hashes[garden] ?? 0, bucketsUsed)] ?? 0;
  return renderTable(
    ["grouping", "writes/s", "p50 ms", "p99 ms", "writes", "shards", "two-phase", "cost a write"],
    groupings.map((grouping) => {
      const figures = simulateCommits(gardens, shardOfGarden, grouping, options);
      return [
        grouping.name,
        Math.round(figures.writesPerSecond).toLocaleString("en"),
        figures.medianMs.toFixed(1),
        figures.slowestHundredthMs.toFixed(1),
        figures.writesPerCommit.toFixed(1),
        figures.shardsPerCommit.toFixed(1),
        percent(figures.shareOverShards),
        figures.costPerWrite.toFixed(2),
      ];
    }),
  );
}

function times(value: number): string {
  return `${value.toFixed(2)} ×`;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
