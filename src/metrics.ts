/** Counts and measures, and shows the result in the text format of Prometheus. */

const durationBucketsSeconds = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const groupBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/** Any other method is counted under one label, so that no client can make labels without end. */
const countedMethods = new Set(["GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"]);

interface OperationCounts {
  /** By method and status. */
  readonly requests: Map<string, Map<number, { count: number }>>;
  readonly durations: Histogram;
}

export class Metrics {
  readonly #version: string;
  readonly #operations = new Map<string, OperationCounts>();
  readonly #commitDurations = new Histogram(durationBucketsSeconds);
  #brokenStreams = 0;
  readonly #groupSizes = new Histogram(groupBuckets);

  constructor(version: string) {
    this.#version = version;
  }

  countRequest(operation: string, method: string, status: number, durationMs: number): void {
    let counts = this.#operations.get(operation);
    if (!counts) {
      counts = { requests: new Map(), durations: new Histogram(durationBucketsSeconds) };
      this.#operations.set(operation, counts);
    }
    counts.durations.observe(durationMs / 1000);
    const known = counts.requests.get(method);
    const label = known || countedMethods.has(method) ? method : "other";
    let statuses = known ?? counts.requests.get(label);
    if (!statuses) {
      statuses = new Map();
      counts.requests.set(label, statuses);
    }
    const counter = statuses.get(status);
    if (counter) counter.count++;
    else statuses.set(status, { count: 1 });
  }

  countBrokenStream(): void {
    this.#brokenStreams++;
  }

  countCommit(writes: number, durationMs: number): void {
    this.#groupSizes.observe(writes);
    this.#commitDurations.observe(durationMs / 1000);
  }

  render(): string {
    const cpu = process.cpuUsage();
    return [
      ...family("plantstore_build_info", "gauge", "The running version.", [
        `{version="${this.#version}"} 1`,
      ]),
      ...family(
        "plantstore_requests_total",
        "counter",
        "Requests answered.",
        [...this.#operations].flatMap(([name, { requests }]) =>
          [...requests].flatMap(([method, statuses]) =>
            Array.from(
              statuses,
              ([status, { count }]) =>
                `{operation="${name}",method="${method}",status="${status}"} ${count}`,
            ),
          ),
        ),
      ),
      ...family(
        "plantstore_request_duration_seconds",
        "histogram",
        "From the request's headers to the last byte handed over.",
        [...this.#operations].flatMap(([name, { durations }]) =>
          durations.render(`operation="${name}"`),
        ),
      ),
      ...family("plantstore_broken_streams_total", "counter", "Lists that broke off midway.", [
        ` ${this.#brokenStreams}`,
      ]),
      ...family("plantstore_commits_total", "counter", "Durable commits of plant writes.", [
        ` ${this.#groupSizes.count}`,
      ]),
      ...family("plantstore_writes_total", "counter", "Plant writes in those commits.", [
        ` ${this.#groupSizes.sum}`,
      ]),
      ...family(
        "plantstore_commit_group_size",
        "histogram",
        "Writes that shared one commit.",
        this.#groupSizes.render(""),
      ),
      ...family(
        "plantstore_commit_duration_seconds",
        "histogram",
        "How long a commit took, from its start until it was on stable storage.",
        this.#commitDurations.render(""),
      ),
      ...family("process_resident_memory_bytes", "gauge", "Resident memory.", [
        ` ${process.memoryUsage.rss()}`,
      ]),
      ...family("process_cpu_seconds_total", "counter", "Processor time used.", [
        ` ${(cpu.user + cpu.system) / 1e6}`,
      ]),
      ...family("process_start_time_seconds", "gauge", "When the process started.", [
        ` ${Math.round(performance.timeOrigin / 1000)}`,
      ]),
      "",
    ].join("\n");
  }
}

/** Each sample is what follows the name: a suffix, labels and the value. */
function family(name: string, type: string, help: string, samples: readonly string[]): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map((sample) => name + sample),
  ];
}

class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  count = 0;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.count++;
    this.sum += value;
    for (let index = 0; index < this.#bounds.length; index++) {
      if (value <= (this.#bounds[index] as number)) {
        this.#counts[index] = (this.#counts[index] as number) + 1;
        return;
      }
    }
  }

  render(labels: string): string[] {
    const more = labels === "" ? "" : `${labels},`;
    const alone = labels === "" ? "" : `{${labels}}`;
    let total = 0;
    const buckets = this.#bounds.map((bound, index) => {
      total += this.#counts[index] as number;
      return `_bucket{${more}le="${bound}"} ${total}`;
    });
    return [
      ...buckets,
      `_bucket{${more}le="+Inf"} ${this.count}`,
      `_sum${alone} ${this.sum}`,
      `_count${alone} ${this.count}`,
    ];
  }
}
