/**
 * A service from its start to its stop.
 *
 *     start           claims the port, opens the storage, listens on this thread
 *     after  50 ms    the other threads join, and the periodic tasks of the process begin
 *
 *     stop            streams of events end; each response closes its connection
 *     after 0.1 s     the port closes (`closingMs` in port.ts)
 *     after   1 s     streams whose clients don't read aren't waited for any more (`streamEndMs` in
 *                     thread.ts): they are cut off once no other request is under way
 *     after   8 s     so are all other requests, and no commit is waited for (`drainMs`). Then the
 *                     storage closes: for 2 s at most (`closeMs` in storage.ts)
 *     after   9 s     the process ends, whatever still runs (`stopMs`)
 *     after  10 s     `docker stop` would kill it
 */
import { resolve } from "node:path";
import { PlantStoreError } from "../domain/errors.ts";
import { createBucketMemory } from "../limits/rate-limiter.ts";
import type { Config } from "../shared/config.ts";
import type { Log } from "../shared/log.ts";
import { deadline } from "../shared/promises.ts";
import { isFile, maskAddress } from "../storage/open.ts";
import type { Storage, StorageShare } from "../storage/storage.ts";
import { defaultIntervals, type Intervals, startProcessTasks } from "./periodic-tasks.ts";
import { claimPort } from "./port.ts";
import { openThread, type ThreadConfig } from "./thread.ts";
import { readCertificate } from "./tls.ts";
import type { FromThread, ToThread } from "./worker-thread.ts";

/**
 * Starting the other threads takes all processors for a moment, and so does the SQLite worker, which
 * the first periodic task needs; the first response goes first.
 */
const joinAfterMs = 50;
/** Even if the storage hangs. */
const stopMs = 9_000;

export interface RunningService {
  /** Without a trailing slash. */
  readonly url: string;
  readonly storage: Storage;
  /** Rejects if the service has broken down and must end. */
  readonly failed: Promise<never>;
  /** Stops accepting, finishes what is under way, closes the storage; all of it within 9 s. */
  stop(): Promise<void>;
}

export async function serve(
  settings: Config,
  log: Log,
  intervals: Partial<Intervals> = {},
): Promise<RunningService> {
  // Threads have their own connections and share the limit of the process.
  const poolSize = Math.floor(settings.limits.poolSize / settings.threads);
  const config: ThreadConfig = {
    ...settings,
    limits: { ...settings.limits, poolSize: Math.max(1, poolSize) },
    certificate: settings.tls && (await readCertificate(settings.tls)),
    bucketMemory: settings.usage.rate && createBucketMemory(),
    metricsChannel: crypto.randomUUID(),
    intervals: { ...defaultIntervals, ...intervals },
  };
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {});
  const onFailure = (message: string) =>
    failure.reject(
      new PlantStoreError("unavailable", `A thread broke down: ${message.replace(/\.$/, "")}.`),
    );
  // Before it creates a file.
  claimPort(config);
  const first = await openThread(config, log, {
    onFailure,
    onNewStore: (schema) =>
      log.event("info", "created a new store", { database: locationOf(config.database), schema }),
  });
  const { port, storage, readiness, metrics } = first;
  const others: OtherThread[] = [];
  let tasks: ReturnType<typeof startProcessTasks> | undefined;
  const joining = setTimeout(() => {
    for (let index = 1; index < config.threads; index++) {
      others.push(startThread({ ...config, port }, storage.share(), log, onFailure));
    }
    tasks = startProcessTasks(storage, readiness, config, log, metrics);
  }, joinAfterMs);
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;

  return {
    url: `${config.tls ? "https" : "http"}://${host}:${port}${config.basePath}`,
    storage,
    failed: failure.promise,
    async stop() {
      clearTimeout(joining);
      tasks?.stop();
      const drained = Promise.all([first.drain(), ...others.map((thread) => thread.stop())]);
      // The storage last, because the other threads have joined it.
      const closed = drained.then(() => storage.close());
      await deadline(closed, stopMs, () => {
        log.event("warn", "stopped before all work was finished");
      });
    },
  };
}

/** A file's whole path: a wrong working directory is why most new stores are a surprise. */
function locationOf(database: string): string {
  return isFile(database) ? resolve(database) : maskAddress(database);
}

interface OtherThread {
  /** Resolves once it has drained and closed its storage. */
  stop(): Promise<void>;
}

/** A thread that breaks down takes its connections with it, so the process can't just go on. */
function startThread(
  config: ThreadConfig,
  { state: share, transfer }: StorageShare,
  log: Log,
  onFailure: (message: string) => void,
): OtherThread {
  const worker = new Worker(`${import.meta.dir}/worker-thread.ts`);
  const post = (message: ToThread, moved: Transferable[] = []) =>
    worker.postMessage(message, moved);
  const stopped = Promise.withResolvers<void>();
  let isStopping = false;
  worker.onerror = (event) => onFailure(event.message);
  worker.addEventListener("close", () => {
    if (!isStopping) onFailure("it has ended");
  });
  worker.onmessage = ({ data: message }: MessageEvent<FromThread>) => {
    switch (message.kind) {
      case "log":
        return log.pass(message.lines);
      case "failed":
        return onFailure(message.message);
      case "stopped":
        return stopped.resolve();
    }
  };
  post({ kind: "open", config, share, logFormat: log.format, logLevel: log.level }, [...transfer]);
  return {
    async stop() {
      isStopping = true;
      post({ kind: "stop" });
      await stopped.promise;
      worker.terminate();
    },
  };
}
