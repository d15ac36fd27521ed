/** Arithmetic for a whole service from stated assumptions: storage, log, connections, money. */

/** What was measured says so; everything else is an assumption to be replaced by one's own. */
export const assumptions = {
  gardens: 1e6,
  plants: 1e10,
  /**
   * Measured (postgres-figures.ts, PostgreSQL 18.4): a name of 18 letters, a tag of 11, a garden of
   * 36 (a UUID). Measured on the tables of 0.3: without the index by tag, and with the text of keys.
   */
  plantHeapBytes: 109,
  plantIndexBytes: 99,
  gardenBytes: 209,
  keyBytes: 321,
  tokenBytes: 336,
  /**
   * Measured: of a write to pages that the last checkpoint left alone, and with wal_compression.
   */
  logBytesPerWrite: 5_000,
  logBytesPerWriteCompressed: 2_100,
  requestsPerGardenPerDay: 500,
  shareOfWrites: 0.1,
  peakOverMean: 5,
  freeSpace: 0.3,
  copies: 2,
  shards: 16,
  coresPerShard: 4,
  /** Half of what one instance lists with 100,000 gardens in rotation on SQLite. */
  requestsPerInstance: 3_700,
  coresPerInstance: 2,
  spareInstances: 2,
  poolPerInstance: 10,
  readMs: 1,
  writeMs: 3.5,
  dollarsPerCoreHour: 0.05,
  dollarsPerGigabyteMonth: 0.1,
  hoursPerMonth: 730,
} as const;

export type Assumptions = { readonly [Name in keyof typeof assumptions]: number };

export interface Estimate {
  readonly bytes: number;
  readonly bytesWithRoom: number;
  readonly bytesPerShard: number;
  readonly keyBytes: number;
  readonly tokenBytes: number;
  readonly requestsAtPeak: number;
  readonly writesAtPeak: number;
  readonly logBytesPerDay: number;
  readonly logBytesPerDayCompressed: number;
  readonly instances: number;
  readonly connections: number;
  /** By Little's law: how many are doing something at the peak. */
  readonly busyConnections: number;
  readonly dollarsPerMonth: number;
}

export function estimate(given: Assumptions = assumptions): Estimate {
  const requestsPerSecond = (given.gardens * given.requestsPerGardenPerDay) / 86_400;
  const writesPerDay = given.gardens * given.requestsPerGardenPerDay * given.shareOfWrites;
  const requestsAtPeak = requestsPerSecond * given.peakOverMean;
  const writesAtPeak = requestsAtPeak * given.shareOfWrites;
  const keyBytes = writesPerDay * given.keyBytes;
  const bytes =
    given.plants * (given.plantHeapBytes + given.plantIndexBytes) +
    given.gardens * given.gardenBytes +
    keyBytes;
  const bytesWithRoom = bytes * (1 + given.freeSpace);
  const instances = Math.ceil(requestsAtPeak / given.requestsPerInstance) + given.spareInstances;
  const cores =
    instances * given.coresPerInstance + given.shards * given.copies * given.coresPerShard;
  return {
    bytes,
    bytesWithRoom,
    bytesPerShard: bytesWithRoom / given.shards,
    keyBytes,
    tokenBytes: given.gardens * given.tokenBytes,
    requestsAtPeak,
    writesAtPeak,
    logBytesPerDay: writesPerDay * given.logBytesPerWrite,
    logBytesPerDayCompressed: writesPerDay * given.logBytesPerWriteCompressed,
    instances,
    connections: instances * given.poolPerInstance,
    busyConnections:
      ((requestsAtPeak - writesAtPeak) * given.readMs + writesAtPeak * given.writeMs) / 1000,
    dollarsPerMonth:
      cores * given.dollarsPerCoreHour * given.hoursPerMonth +
      (bytesWithRoom / 1e9) * given.copies * given.dollarsPerGigabyteMonth,
  };
}
