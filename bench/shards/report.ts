/** Runs the whole simulation and lays it out as one page of Markdown. */
import { commitModel } from "./commits.ts";
import { assumptions } from "./estimate.ts";
import { tableOfAssumptions, tableOfConnections, tableOfEstimate } from "./estimate-tables.ts";
import { largest, makeGardens } from "./gardens.ts";
import {
  tableOfAdding,
  tableOfBalance,
  tableOfCommits,
  tableOfHotGarden,
  tableOfLosing,
} from "./tables.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly gardens: number;
  readonly shards: number;
  /** How many writes each grouping is watched for. */
  readonly writes: number;
}

export function renderReport(options: SimulationOptions): string {
  const { seed, gardens: count, shards, writes } = options;
  const plants = (assumptions.plants / assumptions.gardens) * count;
  const skewed = makeGardens({ seed, gardens: count, plants, trafficExponent: 1 });
  const even = makeGardens({ seed, gardens: count, plants, trafficExponent: 0 });
  const load = { seed, writes, instances: 10, connectionsPerInstance: 10 };
  const busy = { ...load, clientsPerInstance: 128 };
  const quiet = { ...load, clientsPerInstance: 4 };
  const { statements, roundTripMs, durableMs } = commitModel;
  const share = (100 * largest(skewed.traffic)).toFixed(1);

  return `# Gardens over shards

\`npm run bench:shards\`, seed ${seed}: ${whole(count)} gardens, ${whole(plants)} plants, ${shards} shards.
A simulation: nothing here was measured on a sharded database. Sizes are log-normal (the largest
garden holds ${whole(largest(skewed.plants))} plants), traffic is Zipf's with exponent 1 (the busiest garden gets
${share} % of all requests). A garden's hash names a bucket, a table says which shard a bucket lies on.
"×" is against the mean: 1.00 is a perfect spread.

## Balance: plants, traffic of the fullest shard

${tableOfBalance(skewed, shards)}

## A shard is added

${tableOfAdding(skewed, shards)}

## A shard is lost

Until it is back or replaced, requests for its gardens fail. If its buckets go to the others, spread or
all to the quietest, the busiest of them carries:

${tableOfLosing(skewed, shards)}

## The busiest garden

${tableOfHotGarden(skewed)}

## Grouping writes

${load.instances} instances with ${load.connectionsPerInstance} connections each; clients that write without a pause. A commit takes
${statements} statements of ${roundTripMs} ms and ${durableMs} ms to be durable, the latter twice over several shards, and holds
the locks of its gardens meanwhile. "writes" and "shards" are per commit. "cost" is the databases'
work for a write, against a write that has a commit to itself. "routed": the load balancer sends a
garden's requests to one instance. There is no queue at the databases' processors.

${busy.clientsPerInstance} clients an instance, skewed traffic:

${tableOfCommits(skewed, shards, busy)}

${busy.clientsPerInstance} clients an instance, even traffic:

${tableOfCommits(even, shards, busy)}

${quiet.clientsPerInstance} clients an instance, skewed traffic:

${tableOfCommits(skewed, shards, quiet)}

## Arithmetic for the whole

${tableOfEstimate()}

${tableOfConnections()}

${tableOfAssumptions()}
`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}
