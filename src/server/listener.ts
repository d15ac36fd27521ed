/** What each thread runs: listens on the port, serves from its own storage, and drains. */
import { closeSync, openSync } from "node:fs";
import { shareAsync } from "../async/share.ts";
import type { Config } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { App } from "../http/app.ts";
import type { EventFeed } from "../http/event-stream.ts";
import type { Log } from "../log.ts";
import type { Metrics, Report } from "../metrics.ts";
import type { BucketMemory } from "../rate-limit/rate-limiter.ts";
import type { Storage } from "../storage/storage.ts";
import { assemble } from "./assembly.ts";
import { type Certificate, ciphers, remainingMs } from "./certificate.ts";
import { type Intervals, startThreadTasks } from "./periodic-tasks.ts";
import type { Readiness } from "./readiness.ts";

/** How long active clients have to see `Connection: close` before the listener stops. */
const closingMs = 100;
/** How long clients have to read the end of their stream of events. */
const streamEndMs = 1_000;
const idleCheckMs = 10;
const acceptPauseMs = 1_000;
/** Above the deadline of a commit, which the runtime would otherwise cut short. */
export const idleTimeoutSeconds = 30;
/** With the time to close the storage, less than the 10 seconds after which `docker stop` kills. */
export const drainMs = 8_000;

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
  readonly readiness: Readiness;
  /** Stops accepting and finishes what is under way; what takes too long is cut short. */
  drain(): Promise<void>;
}

/** Fails with `unavailable`, in one line, if it cannot listen. */
export async function openListener(
  config: ListenerConfig,
  storage: Storage,
  log: Log,
  metrics: Metrics,
  isFirst: boolean,
): Promise<Listener> {
  const { certificate } = config;
  // /metrics needs no token, and rendering takes as long as ten requests, so calls share one.
  const render = shareAsync(async () =>
    metrics.render([...reports.values()], {
      isReady: await assembly.readiness.check().then(
        () => true,
        () => false,
      ),
      certificateSeconds: certificate && remainingMs(certificate) / 1_000,
    }),
  );
  const assembly = assemble(config, storage, log, metrics, render);
  const { app, authenticator, writer, feed } = assembly;
  // If it fails, the cache of tokens is not used until the periodic refresh succeeds.
  await authenticator
    .refresh()
    .catch((error) => log.event("warn", "token refresh failed", { error }));
  if (isFirst) claimPort(config);
  let server = listen(config, app);
  // What each thread counts goes to all others: any of them may be asked for the metrics.
  const channel = new BroadcastChannel(config.metricsChannel);
  const thread = crypto.randomUUID();
  const reports = new Map<string, Report>();
  channel.onmessage = ({ data }) => reports.set(data.thread, data.report);
  const port = server.port ?? config.port;
  feed.disconnect = (request) => server.disconnect(request);
  const servers = new Set([server]);
  const tasks = startThreadTasks(assembly, config.intervals, log);
  if (config.threads > 1) {
    const send = async () => channel.postMessage({ thread, report: metrics.report() });
    tasks.start("metrics report", config.intervals.sendReportMs, send);
  }
  let isAccepting = true;
  let isDraining = false;
  /**
   * Without a free file descriptor, the runtime tries to accept a waiting connection again and
   * again, which takes a whole processor. So the listener stops until the next check. That also
   * closes idle connections and refuses waiting ones.
   */
  async function acceptWhilePossible(): Promise<void> {
    if (isDraining || isAccepting === hasFreeDescriptor()) return;
    if (isAccepting) {
      log.event("error", "out of file descriptors: not accepting connections for a second");
      const old = server;
      old.stop().finally(() => servers.delete(old));
    } else {
      server = listen({ ...config, port }, app);
      servers.add(server);
    }
    isAccepting = !isAccepting;
  }
  tasks.start("accepting connections", acceptPauseMs, acceptWhilePossible);

  async function finishWork(): Promise<void> {
    await writer.drain();
    await authenticator.noteUses().catch(() => {});
  }

  return {
    port,
    readiness: assembly.readiness,
    async drain() {
      isDraining = true;
      feed.close();
      // One deadline for all of it.
      const timeUp = new Promise<void>((resolve) => setTimeout(resolve, drainMs).unref());
      const stop = (isAbrupt: boolean) =>
        Promise.all(Array.from(servers, (each) => each.stop(isAbrupt)));
      // A connection closed right after a response may already carry the next request, whose sender
      // would not know what became of it: so clients are asked to close first.
      for (const each of servers) each.closeAfterResponses();
      await Bun.sleep(closingMs);
      const stopped = stop(false);
      await Promise.race([stopped, untilIdle(servers, feed, drainMs - closingMs)]);
      await Promise.race([stopped, stop(true)]);
      tasks.stop();
      channel.close();
      await Promise.race([finishWork(), timeUp]);
    },
  };
}

function hasFreeDescriptor(): boolean {
  try {
    closeSync(openSync("/dev/null", "r"));
    return true;
  } catch {
    return false;
  }
}

type Server = ReturnType<typeof listen>;

function listen(config: ListenerConfig, app: App) {
  const { host, port, threads, certificate } = config;
  let isClosing = false;
  function respond(request: Request, isExactOpenPath: boolean): Response | Promise<Response> {
    const response = app.fetch(request, isExactOpenPath);
    return response instanceof Promise ? response.then(announceClose) : announceClose(response);
  }
  /** After the handler: requests in flight when closing began get the header, too. */
  function announceClose(response: Response): Response {
    if (isClosing) response.headers.set("Connection", "close");
    return response;
  }
  const server = withListenError(config, () =>
    Bun.serve({
      hostname: host,
      port,
      // Routes match the path as it was sent; `request.url` has it normalized.
      routes: Object.fromEntries(
        app.openPaths.map((path) => [path, (request: Request) => respond(request, true)]),
      ),
      fetch: (request) => respond(request, false),
      development: false,
      // The kernel shares the connections out among the threads that listen.
      reusePort: threads > 1,
      idleTimeout: idleTimeoutSeconds,
      // The app refuses large bodies itself, after the token and with a problem that says so.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      ...(certificate && { tls: { cert: certificate.cert, key: certificate.key, ciphers } }),
    }),
  );
  return {
    port: server.port,
    pendingRequests: () => server.pendingRequests,
    /** Takes up to four seconds, because Bun checks its timeouts that often. Any server will do. */
    disconnect: (request: Request) => server.timeout(request, 1),
    stop: (isAbrupt?: boolean) => server.stop(isAbrupt),
    /** Each connection ends with its next response. */
    closeAfterResponses() {
      isClosing = true;
    },
  };
}

/**
 * Resolves once no request is in flight, or after a while. It waits only a second for streams of
 * events: those left after that belong to clients that don't read. Over TLS, Bun's own stop also
 * waits for clients to close idle connections, which many only do when they send the next request.
 */
async function untilIdle(
  servers: ReadonlySet<Server>,
  feed: Pick<EventFeed, "listeners">,
  waitMs: number,
): Promise<void> {
  const startedAtMs = performance.now();
  for (let passedMs = 0; passedMs < waitMs; passedMs = performance.now() - startedAtMs) {
    const unread = passedMs < streamEndMs ? 0 : feed.listeners;
    let pending = 0;
    for (const each of servers) pending += each.pendingRequests();
    if (pending <= unread) return;
    await Bun.sleep(idleCheckMs);
  }
}

/**
 * Fails, as listening does, if another program has the port. Threads share a port by SO_REUSEPORT,
 * which another process of the same user could join; this probe binds without it. A start calls it
 * before it creates a file, and again right before the first thread listens, so that two services
 * that start together don't both pass.
 */
export function claimPort(config: Pick<Config, "host" | "port">): void {
  const { host: hostname, port } = config;
  withListenError(config, () => Bun.listen({ hostname, port, socket: { data() {} } }).stop(true));
}

function withListenError<Result>(
  { host, port }: Pick<Config, "host" | "port">,
  listen: () => Result,
): Result {
  try {
    return listen();
  } catch (error) {
    const message = describeListenError((error as { code?: string }).code, host, port);
    throw new PlantStoreError("unavailable", message);
  }
}

/** Addresses that every machine has. */
const isLocal = (host: string) => /^(?:localhost|127\..*|0\.0\.0\.0|::1?)$/.test(host);

/**
 * The runtime reports some addresses that are not this machine's as in use, and gives no code for a
 * name that doesn't exist.
 */
function describeListenError(code: string | undefined, host: string, port: number): string {
  const failed = `Cannot listen on ${host}:${port}`;
  if (code === "EACCES")
    return `${failed}: permission is denied; ports below 1024 need more rights.`;
  if (code === undefined || code === "EADDRNOTAVAIL") {
    return `${failed}: the host is not a name or address of this machine.`;
  }
  if (code !== "EADDRINUSE") return `${failed}: ${code}.`;
  const maybe = isLocal(host) ? "" : `, or ${host} isn't an address of this machine`;
  const other = port < 65_535 ? port + 1 : 8080;
  return (
    `Port ${port} is in use${maybe}. Stop the other program, or choose a port: ` +
    `plantstore serve --port ${other}`
  );
}
