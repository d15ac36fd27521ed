/** Counters, gauges and histograms, rendered in the text format of Prometheus. */
import { readdirSync, readFileSync } from "node:fs";
import type { PoolUse, StorageSizes } from "./storage/storage.ts";

const durationBucketsSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
/** SQLite reads a page in less time than the first of those buckets. */
const readBucketsSeconds = [0.0001, ...durationBucketsSeconds];
const groupBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/** Other methods share one label, so that no client can create endless labels. */
const countedMethods = new Set(["GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"]);

/** Numbers only, in objects and arrays, so that the counts of threads can be added. */
export interface Counts {
  /** By operation, method and status. */
  readonly requests: Record<string, Record<string, Record<number, number>>>;
  /** By operation. */
  readonly durations: Record<string, Histogram>;
  readonly readDurations: Histogram;
  readonly commitWaits: Histogram;
  readonly commitDurations: Histogram;
  readonly groupSizes: Histogram;
  /** By problem code. */
  readonly failedCommits: Record<string, number>;
  /** By limit. */
  readonly limited: Record<string, number>;
  readonly eventDelays: Histogram;
  sentEvents: number;
  brokenStreams: number;
}

/** How things stand in a thread right now; absent where there is no such thing. */
export interface Gauges {
  readonly pool?: PoolUse | undefined;
  readonly keysAgeSeconds?: number | undefined;
  /** Clients that have a stream of events open. */
  readonly listeners?: number | undefined;
  /** Only in the thread that measures the storage. */
  readonly sizes?: StorageSizes | undefined;
}

/** What one thread contributes. */
export interface Report {
  readonly counts: Counts;
  readonly gauges: Gauges;
}

/** What is known of the whole process. */
export interface ProcessState {
  readonly isReady: boolean;
  /** Negative once it has expired; absent without TLS. */
  readonly certificateSeconds?: number | undefined;
  readonly certificateLifetimeSeconds?: number | undefined;
}

interface Histogram {
  readonly buckets: number[];
  count: number;
  sum: number;
}

export class Metrics {
  readonly #version: string;
  readonly counts: Counts = {
    requests: {},
    durations: {},
    readDurations: emptyHistogram(readBucketsSeconds),
    commitWaits: emptyHistogram(durationBucketsSeconds),
    commitDurations: emptyHistogram(durationBucketsSeconds),
    groupSizes: emptyHistogram(groupBuckets),
    // From 0 on: Prometheus sees no increase in a series that starts at 1.
    failedCommits: { unavailable: 0, "storage-full": 0 },
    limited: {},
    eventDelays: emptyHistogram(durationBucketsSeconds),
    sentEvents: 0,
    brokenStreams: 0,
  };

  /** As last measured. */
  sizes: StorageSizes | undefined;

  /** Reads the gauges of this thread. */
  readGauges: () => Gauges = () => ({});

  constructor(version: string) {
    this.#version = version;
  }

  report(): Report {
    return { counts: this.counts, gauges: { sizes: this.sizes, ...this.readGauges() } };
  }

  countRequest(operation: string, method: string, status: number, durationMs: number): void {
    const { requests, durations } = this.counts;
    durations[operation] ??= emptyHistogram(durationBucketsSeconds);
    observe(durations[operation], durationBucketsSeconds, durationMs / 1000);
    requests[operation] ??= {};
    const label = countedMethods.has(method) ? method : "other";
    requests[operation][label] ??= {};
    const statuses = requests[operation][label];
    statuses[status] = (statuses[status] ?? 0) + 1;
  }

  /** A chunk of events was sent to a listener, this long after the first of them happened. */
  countEvents(events: number, delayMs: number | undefined): void {
    this.counts.sentEvents += events;
    if (delayMs === undefined) return;
    observe(this.counts.eventDelays, durationBucketsSeconds, Math.max(0, delayMs) / 1000);
  }

  countBrokenStream(): void {
    this.counts.brokenStreams++;
  }

  countLimited(limit: string): void {
    const { limited } = this.counts;
    limited[limit] = (limited[limit] ?? 0) + 1;
  }

  countRead(durationMs: number): void {
    observe(this.counts.readDurations, readBucketsSeconds, durationMs / 1000);
  }

  countCommitWait(durationMs: number): void {
    observe(this.counts.commitWaits, durationBucketsSeconds, durationMs / 1000);
  }

  countFailedCommit(code: string): void {
    const { failedCommits } = this.counts;
    failedCommits[code] = (failedCommits[code] ?? 0) + 1;
  }

  countCommit(writes: number, durationMs: number): void {
    observe(this.counts.groupSizes, groupBuckets, writes);
    observe(this.counts.commitDurations, durationBucketsSeconds, durationMs / 1000);
  }

  /** With the reports of the other threads of the process. */
  render(others: readonly Report[] = [], state: ProcessState = { isReady: true }): string {
    const reports = [this.report(), ...others];
    const gauges = reports.map((report) => report.gauges);
    const pools = gauges.map(({ pool }) => pool).filter((pool) => pool !== undefined);
    const scrape: Scrape = {
      ...state,
      version: this.#version,
      counts: reports.map(({ counts }) => counts).reduce(addUp),
      pool: pools.length > 0 ? pools.reduce(addUp) : undefined,
      sizes: gauges.find(({ sizes }) => sizes)?.sizes,
      keysAgeSeconds: maxOf(gauges.map(({ keysAgeSeconds }) => keysAgeSeconds)),
      listeners: gauges.reduce((sum, { listeners = 0 }) => sum + listeners, 0),
    };
    let text = "";
    for (const [name, [help, read]] of Object.entries(values)) {
      const value = read(scrape);
      if (value === undefined) continue;
      const samples = typeof value === "number" ? [` ${value}`] : value;
      text += renderFamily(name, name.endsWith("_total") ? "counter" : "gauge", help, samples);
    }
    for (const [name, [help, read]] of Object.entries(histograms)) {
      text += renderFamily(name, "histogram", help, read(scrape.counts));
    }
    return text;
  }
}

/** What the metrics are read from: all threads taken together. */
interface Scrape extends ProcessState, Gauges {
  readonly version: string;
  readonly counts: Counts;
}

/** A sample is what follows the name: suffix, labels and value. */
type Samples = readonly string[];

/** A number is the only sample. Without a value, the family is left out. */
type Read = (scrape: Scrape) => number | Samples | undefined;

/** By Prometheus's convention, the name of a counter ends in `_total`. The others are gauges. */
const values: Readonly<Record<string, readonly [help: string, read: Read]>> = {
  plantstore_build_info: [
    "The running version.",
    ({ version }) => byLabel("version", { [version]: 1 }),
  ],
  plantstore_ready: ["Whether /readyz is 200.", ({ isReady }) => Number(isReady)],
  plantstore_requests_total: [
    "Requests with a response.",
    ({ counts }) => [...renderRequests(counts.requests)],
  ],
  plantstore_refusals_total: [
    "Requests, and plants of bulks, refused because a limit was reached.",
    ({ counts }) => byLabel("limit", counts.limited),
  ],
  plantstore_broken_streams_total: ["Lists that broke off.", ({ counts }) => counts.brokenStreams],
  plantstore_listeners: ["Streams of events that are open.", ({ listeners }) => listeners],
  plantstore_sent_events_total: ["Events sent to listeners.", ({ counts }) => counts.sentEvents],
  plantstore_commits_total: [
    "Groups of writes committed.",
    ({ counts }) => counts.groupSizes.count,
  ],
  plantstore_writes_total: ["Plant writes in those groups.", ({ counts }) => counts.groupSizes.sum],
  plantstore_failed_commits_total: [
    "Commits that the storage refused.",
    ({ counts }) => byLabel("code", counts.failedCommits),
  ],
  plantstore_pool_connections_max: [
    "Maximum number of connections to PostgreSQL.",
    ({ pool }) => pool?.connectionsMax,
  ],
  plantstore_pool_connections: [
    "Connections to PostgreSQL.",
    ({ pool }) => pool && byLabel("state", { busy: pool.busy, idle: pool.idle }),
  ],
  plantstore_pool_waiting: ["Operations that wait for a connection.", ({ pool }) => pool?.waiting],
  plantstore_database_bytes: ["Size of the database.", ({ sizes }) => sizes?.database],
  plantstore_log_bytes: ["Size of its write-ahead log (SQLite).", ({ sizes }) => sizes?.log],
  plantstore_disk_free_bytes: ["Free room on its disk (SQLite).", ({ sizes }) => sizes?.diskFree],
  plantstore_disk_bytes: ["Size of its disk (SQLite).", ({ sizes }) => sizes?.disk],
  plantstore_issuer_keys_age_seconds: [
    "Since the issuer's keys were last fetched, in the thread where that is longest ago.",
    ({ keysAgeSeconds }) => keysAgeSeconds,
  ],
  plantstore_certificate_remaining_seconds: [
    "Until the certificate expires; negative after that.",
    ({ certificateSeconds }) => certificateSeconds,
  ],
  plantstore_certificate_lifetime_seconds: [
    "From the certificate's first moment to its last.",
    ({ certificateLifetimeSeconds }) => certificateLifetimeSeconds,
  ],
  process_resident_memory_bytes: ["Resident memory.", () => ifReadable(process.memoryUsage.rss)],
  process_open_fds: ["Open file descriptors (Linux).", () => ifReadable(countDescriptors)],
  process_max_fds: [
    "Maximum number of open file descriptors (Linux).",
    () => ifReadable(readDescriptorsMax),
  ],
  process_cpu_seconds_total: ["Processor time used.", cpuSeconds],
  process_start_time_seconds: [
    "When the process started.",
    () => Math.round(performance.timeOrigin / 1000),
  ],
};

const histograms: Readonly<
  Record<string, readonly [help: string, read: (counts: Counts) => Samples]>
> = {
  plantstore_request_duration_seconds: [
    "From the request's headers to the last byte handed over.",
    ({ durations }) =>
      Object.entries(durations).flatMap(([name, histogram]) =>
        renderHistogram(histogram, durationBucketsSeconds, `operation="${name}"`),
      ),
  ],
  plantstore_commit_group_size: [
    "Writes that shared one commit.",
    ({ groupSizes }) => renderHistogram(groupSizes, groupBuckets),
  ],
  plantstore_commit_duration_seconds: [
    "How long a commit took, from its start until it was on stable storage.",
    ({ commitDurations }) => renderHistogram(commitDurations, durationBucketsSeconds),
  ],
  plantstore_commit_wait_seconds: [
    "How long the first write of a group waited for its commit to start.",
    ({ commitWaits }) => renderHistogram(commitWaits, durationBucketsSeconds),
  ],
  plantstore_event_delay_seconds: [
    "From a write to the sending of its event, to each listener that waited for it.",
    ({ eventDelays }) => renderHistogram(eventDelays, durationBucketsSeconds),
  ],
  plantstore_read_duration_seconds: [
    "How long the storage took to read plants.",
    ({ readDurations }) => renderHistogram(readDurations, readBucketsSeconds),
  ],
};

function renderFamily(name: string, type: string, help: string, samples: Samples): string {
  const lines = samples.map((sample) => `${name}${sample}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function byLabel(label: string, counts: Readonly<Record<string, number>>): Samples {
  return Object.entries(counts).map(([value, count]) => `{${label}="${value}"} ${count}`);
}

function maxOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

function* renderRequests(requests: Counts["requests"]) {
  for (const [operation, methods] of Object.entries(requests)) {
    for (const [method, statuses] of Object.entries(methods)) {
      for (const [status, count] of Object.entries(statuses)) {
        yield `{operation="${operation}",method="${method}",status="${status}"} ${count}`;
      }
    }
  }
}

/** Absent if no file descriptor is left to read it: the other metrics matter most then. */
function ifReadable(read: () => number | undefined): number | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Without the one that reads them. */
function countDescriptors(): number {
  return readdirSync("/proc/self/fd").length - 1;
}

/** The soft limit. */
function readDescriptorsMax(): number | undefined {
  const [, max] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
  return max === undefined ? undefined : Number(max);
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function emptyHistogram(bounds: readonly number[]): Histogram {
  return { buckets: bounds.map(() => 0), count: 0, sum: 0 };
}

function observe(histogram: Histogram, bounds: readonly number[], value: number): void {
  histogram.count++;
  histogram.sum += value;
  // A loop, because this runs several times a request: a callback would be garbage each time.
  for (let bucket = 0; bucket < bounds.length; bucket++) {
    if (value > (bounds[bucket] as number)) continue;
    histogram.buckets[bucket] = (histogram.buckets[bucket] as number) + 1;
    return;
  }
}

function renderHistogram(histogram: Histogram, bounds: readonly number[], labels = ""): string[] {
  const more = labels === "" ? "" : `${labels},`;
  const alone = labels === "" ? "" : `{${labels}}`;
  let total = 0;
  const buckets = bounds.map((bound, index) => {
    total += histogram.buckets[index] as number;
    return `_bucket{${more}le="${bound}"} ${total}`;
  });
  return [
    ...buckets,
    `_bucket{${more}le="+Inf"} ${histogram.count}`,
    `_sum${alone} ${histogram.sum}`,
    `_count${alone} ${histogram.count}`,
  ];
}

type Numbers = number | { readonly [key: string]: Numbers } | readonly Numbers[];

/** Adds numbers, and objects and arrays of numbers part by part. */
function addUp<Part>(left: Part, right: Part): Part {
  return addNumbers(left as Numbers, right as Numbers) as Part;
}

function addNumbers(left: Numbers | undefined, right: Numbers | undefined): Numbers {
  if (left === undefined || right === undefined) return left ?? right ?? 0;
  if (typeof left === "number" || typeof right === "number") return Number(left) + Number(right);
  if (Array.isArray(left))
    return left.map((each, index) => addNumbers(each, right[index as never]));
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return Object.fromEntries(
    Array.from(keys, (key) => [key, addNumbers(left[key as never], right[key as never])]),
  );
}
