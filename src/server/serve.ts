/** The wiring of the process: opens the storage, listens on the configured threads, and stops. */
import { deadline } from "../async/deadline.ts";
import type { Config } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { Log } from "../log.ts";
import { Metrics } from "../metrics.ts";
import { createBucketMemory } from "../rate-limit/rate-limiter.ts";
import { openStorage } from "../storage/open.ts";
import type { ConnectionLimits, Storage } from "../storage/storage.ts";
import { version } from "../version.ts";
import { readCertificate, warnOfExpiry } from "./certificate.ts";
import { claimPort, type ListenerConfig, openListener } from "./listener.ts";
import { ListenerThread } from "./listener-thread.ts";
import { defaultIntervals, type Intervals, startProcessTasks } from "./periodic-tasks.ts";

/** Starting the other threads takes all processors for a moment; the first response goes first. */
const joinAfterMs = 50;
/** A storage that hangs must not hold up the stop: `docker stop` kills after 10 seconds. */
const stopMs = 9_000;

export interface Service {
  /** Without a trailing slash. */
  readonly url: string;
  readonly storage: Storage;
  /** Rejects if the service has broken down and must end. */
  readonly failed: Promise<never>;
  /** Stops accepting, finishes what is under way, closes the storage; all of it within 10 s. */
  stop(): Promise<void>;
}

export async function serve(
  settings: Config,
  log: Log,
  intervals: Partial<Intervals> = {},
): Promise<Service> {
  const limits = shareOf(settings.limits, settings.threads);
  const certificate = settings.tls && (await readCertificate(settings.tls));
  const bucketMemory = settings.usage.rate && createBucketMemory();
  const config = {
    ...settings,
    limits,
    certificate,
    bucketMemory,
    metricsChannel: crypto.randomUUID(),
    intervals: { ...defaultIntervals, ...intervals },
  };
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => {});
  const onFailure = (message: string) =>
    failure.reject(
      new PlantStoreError("unavailable", `A thread broke down: ${message.replace(/\.$/, "")}.`),
    );
  const { database, usage } = config;
  claimPort(config);
  const metrics = new Metrics(version);
  const storage = await openStorage(database, {
    isServing: true,
    limits,
    onFailure,
    onRead: (durationMs) => metrics.countRead(durationMs),
    plantsMax: usage.plantsMax,
    withoutEvents: config.events === "off",
  });
  try {
    const service = await start(config, storage, log, metrics, onFailure);
    return { ...service, failed: failure.promise };
  } catch (error) {
    await storage.close();
    throw error;
  }
}

async function start(
  config: ListenerConfig,
  storage: Storage,
  log: Log,
  metrics: Metrics,
  onFailure: (message: string) => void,
): Promise<Omit<Service, "failed">> {
  const threads: ListenerThread[] = [];
  const listener = await openListener(config, storage, log, metrics, true);

  const { intervals, certificate } = config;
  // This thread is serving already; the others join it.
  const joining = setTimeout(() => {
    for (let index = 1; index < config.threads; index++) {
      threads.push(
        new ListenerThread({
          config: { ...config, port: listener.port },
          share: storage.share(),
          log,
          onFailure,
        }),
      );
    }
  }, joinAfterMs);
  const tasks = startProcessTasks(storage, listener.readiness, config, log, metrics);
  const checkCertificate = async () => {
    if (certificate) warnOfExpiry(certificate, log);
  };
  tasks.start("certificate check", intervals.checkCertificateMs, checkCertificate, "at once");
  async function finish(): Promise<void> {
    await Promise.all([listener.drain(), ...threads.map((thread) => thread.stop())]);
    // Last, because the others have joined it.
    await storage.close();
  }
  const host = config.host.includes(":") ? `[${config.host}]` : config.host;

  return {
    url: `${config.tls ? "https" : "http"}://${host}:${listener.port}${config.basePath}`,
    storage,
    async stop() {
      clearTimeout(joining);
      tasks.stop();
      await deadline(finish(), stopMs, () => {
        log.event("warn", "stopped before all work was finished");
      });
    },
  };
}

/** Threads have their own connections and share the limit of the process. */
function shareOf(limits: ConnectionLimits, threads: number): ConnectionLimits {
  return { ...limits, poolSize: Math.max(1, Math.floor(limits.poolSize / threads)) };
}
