/** What is made of what, once on each thread: the parts that serve requests. */

import { Authenticator } from "../auth/authenticator.ts";
import { JwtVerifier } from "../auth/jwt.ts";
import { Events } from "../domain/events.ts";
import { Plants } from "../domain/plants.ts";
import { ResponseCache } from "../http/cache.ts";
import { Connections } from "../http/connections.ts";
import { EventFeed } from "../http/event-feed.ts";
import { createFile } from "../http/file-reply.ts";
import { createResponseHeaders } from "../http/headers.ts";
import { Lists } from "../http/listing.ts";
import { createPipeline } from "../http/pipeline.ts";
import { createRequestIds } from "../http/request-head.ts";
import { type BucketMemory, createBucketMemory, RateLimiter } from "../limits/rate-limiter.ts";
import { ReservedBytes } from "../limits/reserved-bytes.ts";
import { Scheduler } from "../limits/scheduler.ts";
import { Clocks } from "../shared/clocks.ts";
import type { Config } from "../shared/config.ts";
import type { Log } from "../shared/log.ts";
import { Metrics } from "../shared/metrics.ts";
import { memoizeAsync, singleFlight } from "../shared/promises.ts";
import { version } from "../shared/version.ts";
import { type CommitObserver, GroupCommit } from "../storage/group-commit.ts";
import type { Storage } from "../storage/storage.ts";
import { Readiness } from "./readiness.ts";
import type { Certificate } from "./tls.ts";

export interface WiredConfig extends Config {
  /** Where the threads of a process count requests together. */
  readonly bucketMemory?: BucketMemory | undefined;
  /** Absent: plain HTTP. */
  readonly certificate?: Certificate | undefined;
}

/** `now` is the time by which requests wait. */
export function wire(
  config: WiredConfig,
  storage: Storage,
  log: Log,
  metrics = new Metrics(version),
  now?: () => number,
) {
  const { basePath, usage } = config;
  const readiness = new Readiness(storage, log, config.database);
  const groupCommit = new GroupCommit(storage, observeCommits(metrics, readiness));
  const clocks = new Clocks();
  const jwts = config.jwt && new JwtVerifier(config.jwt, clocks);
  const authenticator = new Authenticator(storage, clocks, jwts);
  const limiter =
    usage.rate && new RateLimiter(usage.rate, config.bucketMemory ?? createBucketMemory(), now);
  const scheduler = new Scheduler(now);
  const reservedBytes = new ReservedBytes();
  const events = new Events(storage, config.events !== "off");
  const readVersion = (garden: string) => storage.version(garden);
  const connections = new Connections();
  const feed = new EventFeed({
    authenticator,
    scheduler,
    metrics,
    readVersion,
    events,
    connections,
  });
  const pipeline = createPipeline({
    basePath,
    nextRequestId: createRequestIds(),
    plants: new Plants(storage, groupCommit),
    lists: new Lists((garden) => scheduler.turn(garden), reservedBytes, now),
    events,
    feed,
    checkStorage: () => readiness.check(),
    // It needs no token, and rendering takes as long as ten requests, so calls share one.
    renderMetrics: singleFlight(async () => metrics.render(await readiness.isReady())),
    // Loaded when it is first asked for: it takes longer to load than everything else.
    loadOpenApi: memoizeAsync(async () => {
      const { createOpenApi } = await import("../http/openapi.ts");
      return createFile("application/json", JSON.stringify(createOpenApi({ version, basePath })));
    }),
    authenticator,
    scheduler,
    now: now ?? (() => performance.now()),
    connections,
    reservedBytes,
    limiter,
    cache: new ResponseCache(),
    readVersion,
    headers: createResponseHeaders({
      allowedOrigins: config.corsOrigins,
      isSecure: config.tls !== undefined,
      usage,
      limiter,
    }),
    metrics,
    log,
    reportFailure: (error, logIt) => readiness.logUnlessLost(error, logIt),
  });
  metrics.readGauges = () => ({
    pool: storage.pool?.(),
    listeners: feed.listeners,
    ...certificateGauges(config),
    keysAgeSeconds: jwts && jwts.keys.ageMs / 1_000,
  });
  return { pipeline, authenticator, jwts, groupCommit, feed, connections, readiness };
}

export type Wired = ReturnType<typeof wire>;

/** What becomes of commits is counted, and says whether the storage is ready. */
function observeCommits(metrics: Metrics, readiness: Readiness): CommitObserver {
  return {
    onStart: (waitedMs) => metrics.countCommitWait(waitedMs),
    onCommit(outcomes, durationMs) {
      metrics.countCommit(outcomes.length, durationMs);
      for (const outcome of outcomes) {
        if (outcome.kind === "full") metrics.countLimited(outcome.limit);
      }
      readiness.noteCommit();
    },
    onGardenWait: (waitedMs) => metrics.countGardenWait(waitedMs),
    onGardenRefusal: (count) => metrics.countGardenRefusals(count),
    onFailure(error) {
      metrics.countFailedCommit(error.code);
      readiness.noteFailure(error);
    },
    onSlow: () => readiness.noteSlowCommit(),
    onStuck: (isStuck) => readiness.noteStuckCommit(isStuck),
  };
}

function certificateGauges({ certificate }: WiredConfig) {
  if (!certificate) return {};
  return {
    certificateSeconds: (certificate.expiresAtMs - Date.now()) / 1_000,
    certificateLifetimeSeconds: certificate.lifetimeMs / 1_000,
  };
}
