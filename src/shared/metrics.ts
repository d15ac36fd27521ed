/** Counters, gauges and histograms, rendered in the text format of Prometheus. */
import { readdirSync, readFileSync } from "node:fs";
import type { PoolUse, StorageSizes } from "../storage/storage.ts";

const durationBounds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

type HistogramFamily = readonly [help: string, bounds: readonly number[], label?: string];

/** By name: help, upper bounds of the buckets, and the label of the series if there are several. */
// biome-ignore format: a table.
const histograms = {
  plantstore_request_duration_seconds:
    ["From the request's headers to the last byte handed over.", durationBounds, "operation"],
  plantstore_commit_group_size:
    ["Writes that shared one commit.", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]],
  plantstore_commit_duration_seconds:
    ["How long a commit took, from its start until it was on stable storage.", durationBounds],
  plantstore_commit_wait_seconds:
    ["How long the first write of a group waited for its commit to start.", durationBounds],
  plantstore_garden_wait_seconds:
    ["From a write to its commit, if another instance or program held its garden.", durationBounds],
  plantstore_event_delay_seconds:
    ["From a write to the sending of its event, to each listener that waited for it.", durationBounds],
  // SQLite reads a page in less time than the first of the other bounds.
  plantstore_read_duration_seconds:
    ["How long the storage took to read plants.", [0.0001, ...durationBounds]],
} as const satisfies Readonly<Record<string, HistogramFamily>>;

/** Other methods share one label, so that no client can create endless labels. */
const countedMethods = new Set(["GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"]);

/** Numbers only, in objects and arrays, so that the counts of threads can be added. */
function createCounts() {
  return {
    /** By operation, method and status. */
    requests: {} as Record<string, Record<string, Record<number, number>>>,
    /** By problem code. From 0 on: Prometheus sees no increase in a series that starts at 1. */
    failedCommits: { unavailable: 0, "storage-full": 0 } as Record<string, number>,
    /** By limit. */
    limited: {} as Record<string, number>,
    sentEvents: 0,
    brokenStreams: 0,
    gardenRefusals: 0,
    commits: 0,
    writes: 0,
    /** By name, and by the value of the label, which is empty if there is none. */
    histograms: {} as Record<string, Record<string, Histogram>>,
  };
}

type Counts = ReturnType<typeof createCounts>;

/** How things stand in a thread right now; absent where there is no such thing. */
interface Gauges {
  readonly pool?: PoolUse | undefined;
  readonly keysAgeSeconds?: number | undefined;
  /** Clients that have a stream of events open. */
  readonly listeners?: number | undefined;
  /** Until the certificate expires: negative after that. */
  readonly certificateSeconds?: number | undefined;
  readonly certificateLifetimeSeconds?: number | undefined;
  /** Only in the thread that measures the storage. */
  readonly sizes?: StorageSizes | undefined;
}

/** What one thread contributes. */
export interface Report {
  readonly counts: Counts;
  readonly gauges: Gauges;
}

interface Histogram {
  readonly buckets: number[];
  count: number;
  sum: number;
}

export class Metrics {
  readonly counts = createCounts();

  /** What the other threads of the process reported last. */
  readonly others = new Map<string, Report>();

  /** As last measured. */
  sizes: StorageSizes | undefined;

  /** Reads the gauges of this thread. */
  readGauges: () => Gauges = () => ({});

  constructor(private readonly version: string) {}

  report(): Report {
    return { counts: this.counts, gauges: { sizes: this.sizes, ...this.readGauges() } };
  }

  countRequest(operation: string, method: string, status: number, durationMs: number): void {
    this.#observe("plantstore_request_duration_seconds", durationMs / 1000, operation);
    const { requests } = this.counts;
    requests[operation] ??= {};
    const label = countedMethods.has(method) ? method : "other";
    requests[operation][label] ??= {};
    countIn(requests[operation][label], status);
  }

  /** A chunk of events was sent to a listener, this long after the first of them happened. */
  countEvents(events: number, delayMs: number | undefined): void {
    this.counts.sentEvents += events;
    if (delayMs === undefined) return;
    this.#observe("plantstore_event_delay_seconds", Math.max(0, delayMs) / 1000);
  }

  countBrokenStream(): void {
    this.counts.brokenStreams++;
  }

  countLimited(limit: string): void {
    countIn(this.counts.limited, limit);
  }

  countRead(durationMs: number): void {
    this.#observe("plantstore_read_duration_seconds", durationMs / 1000);
  }

  countCommitWait(durationMs: number): void {
    this.#observe("plantstore_commit_wait_seconds", durationMs / 1000);
  }

  countFailedCommit(code: string): void {
    countIn(this.counts.failedCommits, code);
  }

  /** `durationMs` is absent if the commit also waited for its garden. */
  countCommit(writes: number, durationMs: number | undefined): void {
    this.counts.commits++;
    this.counts.writes += writes;
    this.#observe("plantstore_commit_group_size", writes);
    if (durationMs === undefined) return;
    this.#observe("plantstore_commit_duration_seconds", durationMs / 1000);
  }

  countGardenWait(durationMs: number): void {
    this.#observe("plantstore_garden_wait_seconds", durationMs / 1000);
  }

  countGardenRefusals(count: number): void {
    this.counts.gardenRefusals += count;
  }

  #observe(name: keyof typeof histograms, value: number, label = ""): void {
    const [, bounds] = histograms[name];
    this.counts.histograms[name] ??= {};
    const series = this.counts.histograms[name];
    series[label] ??= emptyHistogram(bounds);
    observe(series[label], bounds, value);
  }

  /** Of all threads of the process. */
  render(isReady: boolean): string {
    const own = this.report();
    const reports = [own, ...this.others.values()];
    const all = <Name extends keyof Gauges>(name: Name) =>
      reports.map(({ gauges }) => gauges[name]).filter((value) => value !== undefined);
    const ages = all("keysAgeSeconds");
    const scrape: Scrape = {
      ...own.gauges,
      isReady,
      version: this.version,
      counts: reports.map(({ counts }) => counts).reduce(addUp),
      pool: all("pool").reduce<PoolUse | undefined>(addUp, undefined),
      sizes: all("sizes")[0],
      keysAgeSeconds: ages.length > 0 ? Math.max(...ages) : undefined,
      listeners: all("listeners").reduce(addUp, 0),
    };
    let text = "";
    for (const [name, [help, read]] of Object.entries(values)) {
      const value = read(scrape);
      if (value === undefined) continue;
      const samples = typeof value === "number" ? [` ${value}`] : value;
      text += renderFamily(name, name.endsWith("_total") ? "counter" : "gauge", help, samples);
    }
    for (const [name, family] of Object.entries(histograms)) {
      const samples = renderHistograms(family, scrape.counts.histograms[name]);
      text += renderFamily(name, "histogram", family[0], samples);
    }
    return text;
  }
}

/** What the metrics are read from: all threads taken together. */
interface Scrape extends Gauges {
  readonly isReady: boolean;
  readonly version: string;
  readonly counts: Counts;
}

/** A sample is what follows the name: suffix, labels and value. */
type Samples = readonly string[];

/** A number is the only sample. Without a value, the family is left out. */
type Read = (scrape: Scrape) => number | Samples | undefined;

/** By Prometheus's convention, the name of a counter ends in `_total`. The others are gauges. */
// biome-ignore format: a table.
const values: Readonly<Record<string, readonly [help: string, read: Read]>> = {
  plantstore_build_info:
    ["The running version.", ({ version }) => byLabel("version", { [version]: 1 })],
  plantstore_ready: ["Whether /readyz is 200.", ({ isReady }) => Number(isReady)],
  plantstore_requests_total:
    ["Requests with a response.", ({ counts }) => [...renderRequests(counts.requests)]],
  plantstore_refusals_total:
    ["Requests, and plants of bulks, refused because a limit was reached.",
      ({ counts }) => byLabel("limit", counts.limited)],
  plantstore_broken_streams_total: ["List responses aborted before their end.", ({ counts }) => counts.brokenStreams],
  plantstore_listeners: ["Streams of events that are open.", ({ listeners }) => listeners],
  plantstore_sent_events_total: ["Events sent to listeners.", ({ counts }) => counts.sentEvents],
  plantstore_commits_total: ["Groups of writes committed.", ({ counts }) => counts.commits],
  plantstore_writes_total: ["Plant writes in those groups.", ({ counts }) => counts.writes],
  plantstore_failed_commits_total:
    ["Commits that the storage refused.", ({ counts }) => byLabel("code", counts.failedCommits)],
  plantstore_garden_refusals_total:
    ["Writes refused because another instance or program held their garden for too long.",
      ({ counts }) => counts.gardenRefusals],
  plantstore_pool_connections_max:
    ["Maximum number of connections to PostgreSQL.", ({ pool }) => pool?.connectionsMax],
  plantstore_pool_connections:
    ["Connections to PostgreSQL.",
      ({ pool }) => pool && byLabel("state", { busy: pool.busy, idle: pool.idle })],
  plantstore_pool_waiting: ["Operations that wait for a connection.", ({ pool }) => pool?.waiting],
  plantstore_database_bytes: ["Size of the database.", ({ sizes }) => sizes?.database],
  plantstore_log_bytes: ["Size of its write-ahead log (SQLite).", ({ sizes }) => sizes?.log],
  plantstore_disk_free_bytes: ["Free room on its disk (SQLite).", ({ sizes }) => sizes?.diskFree],
  plantstore_disk_bytes: ["Size of its disk (SQLite).", ({ sizes }) => sizes?.disk],
  plantstore_issuer_keys_age_seconds:
    ["Since the issuer's keys were last fetched, in the thread where that is longest ago.",
      ({ keysAgeSeconds }) => keysAgeSeconds],
  plantstore_certificate_remaining_seconds:
    ["Until the certificate expires; negative after that.",
      ({ certificateSeconds }) => certificateSeconds],
  plantstore_certificate_lifetime_seconds:
    ["From the certificate's first moment to its last.",
      ({ certificateLifetimeSeconds }) => certificateLifetimeSeconds],
  process_resident_memory_bytes: ["Resident memory.", () => ifReadable(process.memoryUsage.rss)],
  process_open_fds: ["Open file descriptors (Linux).", () => ifReadable(countDescriptors)],
  process_max_fds:
    ["Maximum number of open file descriptors (Linux).", () => ifReadable(readDescriptorsMax)],
  process_cpu_seconds_total: ["Processor time used.", cpuSeconds],
  process_start_time_seconds:
    ["When the process started.", () => Math.round(performance.timeOrigin / 1000)],
};

function renderFamily(name: string, type: string, help: string, samples: Samples): string {
  const lines = samples.map((sample) => `${name}${sample}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function byLabel(label: string, counts: Readonly<Record<string, number>>): Samples {
  return Object.entries(counts).map(([value, count]) => `{${label}="${value}"} ${count}`);
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

/** Without the descriptor that reads the folder. */
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

function countIn(counts: Record<string | number, number>, key: string | number): void {
  counts[key] = (counts[key] ?? 0) + 1;
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

/** Without a label there is always one: Prometheus sees no increase in one that starts at 1. */
function renderHistograms(
  [, bounds, label]: HistogramFamily,
  series: Readonly<Record<string, Histogram>> = label ? {} : { "": emptyHistogram(bounds) },
): string[] {
  return Object.entries(series).flatMap(([value, { buckets, count, sum }]) => {
    const labels = label ? [`${label}="${value}"`] : [];
    const alone = label ? `{${labels}}` : "";
    let total = 0;
    const lines = [...bounds, "+Inf"].map((bound, index) => {
      total = buckets.length > index ? total + (buckets[index] as number) : count;
      return `_bucket{${[...labels, `le="${bound}"`]}} ${total}`;
    });
    return [...lines, `_sum${alone} ${sum}`, `_count${alone} ${count}`];
  });
}

type Numbers = number | { readonly [key: string]: Numbers } | readonly Numbers[];

/** Adds numbers, and objects and arrays of numbers part by part. */
function addUp<Part>(left: Part | undefined, right: Part): Part {
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
