/** Wires up what serves requests in one thread: app, authentication, group commit. */
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
import { version } from "../version.ts";
import { Readiness } from "./readiness.ts";

type AssemblyConfig = Pick<Config, "basePath" | "corsOrigins"> &
  Partial<Pick<Config, "database" | "jwt" | "usage" | "tls" | "events">> & {
    /** Where all threads count callers' requests. Absent: this thread counts alone. */
    readonly bucketMemory?: BucketMemory | undefined;
  };

export interface Assembly {
  readonly app: App;
  readonly authenticator: Authenticator;
  /** Absent if no issuer is configured. */
  readonly jwts: JwtVerifier | undefined;
  readonly writer: GroupCommit;
  readonly feed: EventFeed;
  readonly readiness: Readiness;
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
  const readiness = new Readiness(storage, writer, log, config.database ?? "");
  const jwts = config.jwt && new JwtVerifier(config.jwt);
  metrics.readGauges = () => ({
    pool: storage.pool?.(),
    listeners: feed.listeners,
    // Before the first fetch, their age counts from the start of the process.
    keysAgeSeconds:
      jwts && (Date.now() - (jwts.keys.fetchedAtMs ?? performance.timeOrigin)) / 1_000,
  });
  const authenticator = new Authenticator(storage, Date.now, jwts);
  const { usage = unlimited } = config;
  const { rate } = usage;
  const limiter = rate && new RateLimiter(rate, config.bucketMemory ?? createBucketMemory());
  const scheduler = new Scheduler();
  const reservedBytes = new ReservedBytes();
  const events = new Events(storage, config.events !== "off");
  const readVersion = (garden: string) => storage.version(garden);
  const shared = { authenticator, scheduler, metrics, readVersion };
  const feed = new EventFeed({ ...shared, events });
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
  });
  return { app, authenticator, jwts, writer, feed, readiness };
}
