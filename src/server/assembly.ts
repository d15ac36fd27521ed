/** Wires up what serves requests in one thread: app, authentication, group commit, tracing. */
import { memoizeAsync } from "../async/share.ts";
import { Authenticator } from "../auth/authenticator.ts";
import { JwtVerifier } from "../auth/jwt.ts";
import type { Config } from "../config.ts";
import { Events } from "../domain/events.ts";
import { Plants } from "../domain/plants.ts";
import { type App, createApp } from "../http/app.ts";
import { EventFeed } from "../http/event-stream.ts";
import { Lists } from "../http/listing.ts";
import { ReservedBytes } from "../http/reserved-bytes.ts";
import { Scheduler } from "../http/scheduler.ts";
import { type StreamCounts, StreamLimit } from "../http/stream-limit.ts";
import type { Log } from "../log.ts";
import { Metrics } from "../metrics.ts";
import {
  type BucketMemory,
  createBucketMemory,
  RateLimiter,
  unlimited,
} from "../rate-limit/rate-limiter.ts";
import { GroupCommit, groupCommitDefaults } from "../storage/group-commit.ts";
import type { Storage } from "../storage/storage.ts";
import { createTracer } from "../tracing/request-trace.ts";
import { SpanExporter } from "../tracing/span-exporter.ts";
import { version } from "../version.ts";
import { createReadinessMemory, Readiness, type ReadinessMemory } from "./readiness.ts";

/** A collector that is away would otherwise fill the log. */
const droppedSpansLogMs = 60_000;

type AssemblyConfig = Pick<Config, "basePath" | "corsOrigins"> &
  Partial<Pick<Config, "database" | "jwt" | "usage" | "tracing" | "tls" | "events">> & {
    /** Where all threads count callers' requests. Absent: this thread counts alone. */
    readonly bucketMemory?: BucketMemory | undefined;
    /** What all threads know about the storage. Absent: this thread has its own. */
    readonly readinessMemory?: ReadinessMemory | undefined;
    /** Where all threads count the streams of each token. Absent: this thread counts alone. */
    readonly streamCounts?: StreamCounts | undefined;
  };

export interface Assembly {
  readonly app: App;
  readonly authenticator: Authenticator;
  /** Absent if no issuer is configured. */
  readonly jwts: JwtVerifier | undefined;
  readonly writer: GroupCommit;
  readonly feed: EventFeed;
  readonly readiness: Readiness;
  /** Absent if no collector is configured. */
  readonly spans: SpanExporter | undefined;
}

export function assemble(
  config: AssemblyConfig,
  storage: Storage,
  log: Log,
  metrics = new Metrics(version),
  renderMetrics = async () => metrics.render(),
): Assembly {
  const writer = new GroupCommit(storage, {
    ...groupCommitDefaults,
    onStart: (waitedMs) => metrics.countCommitWait(waitedMs),
    onCommit(outcomes, durationMs) {
      metrics.countCommit(outcomes.length, durationMs);
      for (const outcome of outcomes) {
        if (outcome.kind === "full") metrics.countLimited(outcome.limit);
      }
      readiness.noteCommit();
    },
    onFailure(error) {
      metrics.countFailedCommit(error.code);
      readiness.noteFailure(error);
    },
    onSlow: () => readiness.noteSlowCommit(),
  });
  const memory = config.readinessMemory ?? createReadinessMemory();
  const readiness = new Readiness(storage, writer, memory, log, config.database ?? "");
  const jwts = config.jwt && new JwtVerifier(config.jwt);
  metrics.readGauges = () => ({
    pool: storage.pool?.(),
    listeners: feed.listeners,
    // Before the first fetch, their age counts from the start of the process.
    keysAgeSeconds:
      jwts && (Date.now() - (jwts.keys.fetchedAtMs ?? performance.timeOrigin)) / 1_000,
  });
  const authenticator = new Authenticator(storage, Date.now, jwts);
  const { usage = unlimited, tracing } = config;
  const { rate } = usage;
  const limiter = rate && new RateLimiter(rate, config.bucketMemory ?? createBucketMemory());
  const spans = tracing && createSpanExporter(tracing, log, metrics);
  const scheduler = new Scheduler();
  const reservedBytes = new ReservedBytes();
  const events = new Events(storage, config.events !== "off");
  const limit = new StreamLimit(config.streamCounts);
  const readVersion = (garden: string) => storage.version(garden);
  const shared = { authenticator, scheduler, metrics, readVersion };
  const feed = new EventFeed({ ...shared, events, limit });
  const app = createApp({
    context: {
      plants: new Plants(storage, writer),
      lists: new Lists((garden) => scheduler.turn(garden), reservedBytes),
      events,
      openStream: (...values) => feed.open(...values),
      basePath: config.basePath,
      readVersion,
      checkStorage: () => readiness.check(),
      renderMetrics,
      // Loaded when it is first asked for: it takes longer to load than everything else.
      renderOpenApi: memoizeAsync(async () => {
        const { createOpenApi } = await import("../http/openapi.ts");
        return JSON.stringify(createOpenApi({ version, basePath: config.basePath }));
      }),
    },
    authenticator,
    scheduler,
    reservedBytes,
    log,
    reportFailure: (error, logIt) => readiness.logUnlessLost(error, logIt),
    metrics,
    allowedOrigins: config.corsOrigins,
    isSecure: config.tls !== undefined,
    usage,
    limiter,
    beginTrace: spans && createTracer(tracing?.ratio ?? 1, (each) => spans.add(each)),
  });
  return { app, authenticator, jwts, writer, feed, readiness, spans };
}

function createSpanExporter(
  { endpoint, headers }: NonNullable<Config["tracing"]>,
  log: Log,
  metrics: Metrics,
): SpanExporter {
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  return new SpanExporter({
    endpoint,
    headers,
    version,
    onDrop(count, reason) {
      metrics.countDroppedSpans(count);
      if (performance.now() - loggedAtMs < droppedSpansLogMs) return;
      loggedAtMs = performance.now();
      log.event("warn", "spans dropped", { reason });
    },
  });
}
