/** The estimate as tables: storage and money, and what instances and pools ask of the database. */
import { renderTable } from "../report/text-table.ts";
import { assumptions, estimate } from "./estimate.ts";

export function tableOfAssumptions(): string {
  return renderTable(
    ["assumed", "value"],
    Object.entries(assumptions).map(([name, value]) => [name, value.toLocaleString("en")]),
  );
}

export function tableOfEstimate(): string {
  const found = estimate();
  const { shards, copies } = assumptions;
  return renderTable(
    ["estimated", "value"],
    [
      ["plants, gardens and keys, one copy", gigabytes(found.bytes)],
      ["with room for vacuum and growth", gigabytes(found.bytesWithRoom)],
      [`on each of ${shards} shards`, gigabytes(found.bytesPerShard)],
      [`all ${copies} copies`, gigabytes(found.bytesWithRoom * copies)],
      ["keys of a day, of these", gigabytes(found.keyBytes)],
      ["tokens, one a garden, on every node", gigabytes(found.tokenBytes)],
      ["requests a second at the peak", whole(found.requestsAtPeak)],
      ["writes a second at the peak", whole(found.writesAtPeak)],
      ["write-ahead log a day", gigabytes(found.logBytesPerDay)],
      ["the same, compressed", gigabytes(found.logBytesPerDayCompressed)],
      ["instances", whole(found.instances)],
      ["connections they hold", whole(found.connections)],
      ["connections busy at the peak", whole(found.busyConnections)],
      ["dollars a month", whole(found.dollarsPerMonth)],
    ],
  );
}

/** PostgreSQL's default; three of them are kept for the superuser. */
const connectionsMax = 100;
const connectionsKept = 3;

/** The load is the same in each row, so more instances only hold more idle connections. */
export function tableOfConnections(): string {
  const { busyConnections } = estimate();
  return renderTable(
    ["instances", "connections held", "busy at the peak", `max_connections ${connectionsMax}`],
    [2, 9, 10, 50, 200].map((instances) => {
      const held = instances * assumptions.poolPerInstance;
      const fits = held <= connectionsMax - connectionsKept;
      return [
        whole(instances),
        whole(held),
        `${whole((100 * Math.min(held, busyConnections)) / held)} %`,
        fits ? "direct" : "needs PgBouncer, or a higher limit",
      ];
    }),
  );
}

function gigabytes(bytes: number): string {
  return `${bytes < 1e10 ? (bytes / 1e9).toFixed(1) : whole(bytes / 1e9)} GB`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}
