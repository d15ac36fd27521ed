/**
 * What each thread runs: its own storage, the parts that serve requests (`assemble`), its periodic
 * tasks, and a server on the port that all threads share.
 */
import { Clocks } from "../async/clocks.ts";
import { deadline } from "../async/deadline.ts";
import { memoizeAsync, singleFlight } from "../async/memoize.ts";
import { Authenticator } from "../auth/authenticator.ts";
import { JwtVerifier } from "../auth/jwt.ts";
import type { Config } from "../config.ts";
import { Events } from "../domain/events.ts";
import { Plants } from "../domain/plants.ts";
import { createApp } from "../http/app.ts";
import { EventFeed } from "../http/event-stream.ts";
import { Lists } from "../http/listing.ts";
import { type BucketMemory, createBucketMemory, RateLimiter } from "../http/rate-limiter.ts";
import { ReservedBytes } from "../http/reserved-bytes.ts";
import { Scheduler } from "../http/scheduler.ts";
import type { Log } from "../log.ts";
import { Metrics } from "../metrics.ts";
import { GroupCommit } from "../storage/group-commit.ts";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { version } from "../version.ts";
import { type Intervals, startThreadTasks } from "./periodic-tasks.ts";
import { type Certificate, listen, type Server } from "./port.ts";
import { Readiness } from "./readiness.ts";

/** How long clients have to read the end of their stream of events. */
const streamEndMs = 1_000;
const idleCheckMs = 10;
/** With the time to close the storage, less than the 10 seconds after which `docker stop` kills. */
const drainMs = 8_000;

export interface ListenerConfig extends Config {
  /** Absent: requests are not counted. */
  readonly bucketMemory: BucketMemory | undefined;
  /** Where the threads of this process send each other what they count. */
  readonly metricsChannel: string;
  /** Absent: plain HTTP. */
  readonly certificate: Certificate | undefined;
  readonly intervals: Intervals;
}

export interface Listener {
  readonly port: number;
  readonly storage: Storage;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  /** Stops accepting and finishes what is under way; what takes too long is cut short. */
  drain(): Promise<void>;
}

/**
 * Fails with `unavailable`, in one line, if it can't open the storage or listen. The first listener
 * of a process has no `share`: it opens the storage that the others join.
 */
export async function openListener(
  config: ListenerConfig,
  log: Log,
  opening: Pick<Parameters<typeof openStorage>[1], "share" | "onFailure" | "onNewStore">,
): Promise<Listener> {
  const metrics = new Metrics(version);
  const storage = await openStorage(config.database, {
    ...opening,
    isServing: true,
    limits: config.limits,
    onRead: (durationMs) => metrics.countRead(durationMs),
    plantsMax: config.usage.plantsMax,
    withoutEvents: config.events === "off",
  });
  try {
    return await startServing(config, storage, log, metrics);
  } catch (error) {
    await storage.close();
    throw error;
  }
}

async function startServing(
  config: ListenerConfig,
  storage: Storage,
  log: Log,
  metrics: Metrics,
): Promise<Listener> {
  const assembly = assemble(config, storage, log, metrics);
  const { app, authenticator, groupCommit, feed, readiness } = assembly;
  // If it fails, the cache of tokens is not used until the periodic refresh succeeds.
  await authenticator
    .refresh()
    .catch((error) => log.event("warn", "token refresh failed", { error }));
  const server = listen(config, app);
  feed.disconnect = (request) => server.disconnect(request);
  app.closeLater = (request) => server.closeLater(request);
  const tasks = startThreadTasks(assembly, config.intervals, log);
  // What each thread counts goes to all others: any of them may be asked for the metrics.
  const channel = new BroadcastChannel(config.metricsChannel);
  const thread = crypto.randomUUID();
  channel.onmessage = ({ data }) => metrics.others.set(data.thread, data.report);
  if (config.threads > 1) {
    const send = async () => channel.postMessage({ thread, report: metrics.report() });
    tasks.start("metrics report", config.intervals.sendReportMs, send);
  }

  async function finishWrites(): Promise<void> {
    await groupCommit.drain();
    await authenticator.noteUses().catch(() => {});
  }

  return {
    port: server.port,
    storage,
    readiness,
    metrics,
    async drain() {
      const startedAtMs = performance.now();
      feed.close();
      // A connection closed right after a response may already carry the next request, whose sender
      // would not know what became of it: so clients are asked to close first.
      await server.closeAfterResponses();
      const stopped = server.stop(false);
      await Promise.race([stopped, untilIdle(server, feed, startedAtMs)]);
      // Cuts what is left, if anything.
      await Promise.race([stopped, server.stop(true)]);
      tasks.stop();
      channel.close();
      const leftMs = startedAtMs + drainMs - performance.now();
      await deadline(finishWrites(), leftMs, () => {});
    },
  };
}

/**
 * Resolves once no request is in flight, or after a while. It waits only a second for streams of
 * events: those left after that belong to clients that don't read. Over TLS, Bun's own stop also
 * waits for clients to close idle connections, which many only do when they send the next request.
 */
async function untilIdle(
  server: Server,
  feed: Pick<EventFeed, "listeners">,
  startedAtMs: number,
): Promise<void> {
  for (let waitedMs = 0; waitedMs < drainMs; waitedMs = performance.now() - startedAtMs) {
    const unread = waitedMs < streamEndMs ? 0 : feed.listeners;
    if (server.pendingRequests() <= unread) return;
    await Bun.sleep(idleCheckMs);
  }
}

export type Assembly = ReturnType<typeof assemble>;

/** Wires up the parts that serve requests on one thread. `now` is the time by which they wait. */
export function assemble(
  config: Config & Partial<Pick<ListenerConfig, "bucketMemory" | "certificate">>,
  storage: Storage,
  log: Log,
  metrics = new Metrics(version),
  now?: () => number,
) {
  const { usage, certificate } = config;
  const groupCommit = new GroupCommit(storage, {
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
  });
  const readiness = new Readiness(storage, groupCommit, log, config.database);
  const clocks = new Clocks();
  const jwts = config.jwt && new JwtVerifier(config.jwt, clocks);
  metrics.readGauges = () => ({
    pool: storage.pool?.(),
    listeners: feed.listeners,
    certificateSeconds: certificate && (certificate.expiresAtMs - Date.now()) / 1_000,
    certificateLifetimeSeconds: certificate && certificate.lifetimeMs / 1_000,
    keysAgeSeconds: jwts && jwts.keys.ageMs / 1_000,
  });
  const authenticator = new Authenticator(storage, clocks, jwts);
  const { rate } = usage;
  const limiter = rate && new RateLimiter(rate, config.bucketMemory ?? createBucketMemory(), now);
  const scheduler = new Scheduler(now);
  const reservedBytes = new ReservedBytes();
  const events = new Events(storage, config.events !== "off");
  const readVersion = (garden: string) => storage.version(garden);
  const shared = { authenticator, scheduler, metrics, readVersion };
  const feed = new EventFeed({ ...shared, events });
  const app = createApp({
    context: {
      plants: new Plants(storage, groupCommit),
      lists: new Lists((garden) => scheduler.turn(garden), reservedBytes, now),
      events,
      openStream: (...values) => feed.open(...values),
      basePath: config.basePath,
      readVersion,
      checkStorage: () => readiness.check(),
      // It needs no token, and rendering takes as long as ten requests, so calls share one.
      renderMetrics: singleFlight(async () => metrics.render(await readiness.isReady())),
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
    now: now ?? (() => performance.now()),
  });
  return { app, authenticator, jwts, groupCommit, feed, readiness };
}
