/**
 * What each thread runs: its own storage, the parts that serve requests (`wire.ts`), its periodic
 * tasks, and a server on the port that all threads share.
 */

import type { EventFeed } from "../http/event-feed.ts";
import type { Log } from "../shared/log.ts";
import { Metrics } from "../shared/metrics.ts";
import { deadline } from "../shared/promises.ts";
import { version } from "../shared/version.ts";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { type Intervals, startThreadTasks } from "./periodic-tasks.ts";
import { listen, type Server } from "./port.ts";
import type { Readiness } from "./readiness.ts";
import { type WiredConfig, wire } from "./wire.ts";

/** How long to wait for clients to read the end of their stream of events: see serve.ts. */
const streamEndMs = 1_000;
const idleCheckMs = 10;
/** How long to wait for requests and commits: see serve.ts. */
const drainMs = 8_000;

export interface ThreadConfig extends WiredConfig {
  /** Where the threads of this process send each other what they count. */
  readonly metricsChannel: string;
  readonly intervals: Intervals;
}

export interface ServingThread {
  readonly port: number;
  readonly storage: Storage;
  readonly readiness: Readiness;
  readonly metrics: Metrics;
  /** Stops accepting and finishes what is under way; what takes too long is cut short. */
  drain(): Promise<void>;
}

/**
 * Fails with `unavailable`, in one line, if it can't open the storage or listen. The first thread
 * of a process has no `share`: it opens the storage that the others join.
 */
export async function openThread(
  config: ThreadConfig,
  log: Log,
  opening: Pick<Parameters<typeof openStorage>[1], "share" | "onFailure" | "onNewStore">,
): Promise<ServingThread> {
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
  config: ThreadConfig,
  storage: Storage,
  log: Log,
  metrics: Metrics,
): Promise<ServingThread> {
  const parts = wire(config, storage, log, metrics);
  const { pipeline, authenticator, groupCommit, feed, connections, readiness } = parts;
  // If it fails, the cache of tokens is not used until the periodic refresh succeeds.
  await authenticator
    .refresh()
    .catch((error) => log.event("warn", "token refresh failed", { error }));
  const server = listen(config, pipeline);
  connections.disconnect = server.disconnect;
  connections.closeLater = server.closeLater;
  connections.areClosing = server.areClosing;
  const tasks = startThreadTasks(parts, config.intervals, log);
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
