/** What the service does besides serving requests, and how often. */

import type { Authenticator } from "../auth/authenticator.ts";
import type { JwtVerifier } from "../auth/jwt.ts";
import type { Config } from "../shared/config.ts";
import type { Log } from "../shared/log.ts";
import type { Metrics } from "../shared/metrics.ts";
import type { Storage } from "../storage/storage.ts";
import type { Readiness } from "./readiness.ts";

export const defaultIntervals = {
  /** A revocation must hold within 5 seconds, and a poll may be slow. */
  refreshTokensMs: 1_000,
  /** Only while the database is lost. */
  checkDatabaseMs: 1_000,
  noteTokenUsesMs: 60_000,
  /**
   * How often the issuer is asked for its keys. While it can be asked, a withdrawn key is accepted
   * for 90 s at most: this, `cooldownMs`, `fetchTimeoutMs` and `verifiedMs` (jwt.ts).
   */
  refreshIssuerKeysMs: 60_000,
  forgetIdempotencyKeysMs: 60_000,
  forgetEventsMs: 600_000,
  /** Used instead if gardens have a quota: events beyond it must be gone within 10 s. */
  forgetEventsUnderQuotaMs: 5_000,
  measureStorageMs: 15_000,
  /** How old the counts of other threads may be in the metrics. */
  sendReportMs: 1_000,
};

/** How often each task runs; tests choose shorter ones. */
export type Intervals = Readonly<typeof defaultIntervals>;

/** Expired keys are kept this long: one still counts if it was valid when its request arrived. */
const keyGraceMs = 60_000;

/** Between steps of the event cleanup, so that requests run. */
const stepPauseMs = 10;

/** The tasks of each thread. */
export function startThreadTasks(
  parts: {
    readonly authenticator: Authenticator;
    readonly jwts: JwtVerifier | undefined;
    readonly readiness: Readiness;
  },
  intervals: Intervals,
  log: Log,
): PeriodicTasks {
  const { authenticator, jwts, readiness } = parts;
  const tasks = new PeriodicTasks(log, readiness);
  tasks.start("database check", intervals.checkDatabaseMs, () => readiness.watch());
  tasks.start("token refresh", intervals.refreshTokensMs, () => authenticator.refresh());
  tasks.start("token use update", intervals.noteTokenUsesMs, () => authenticator.noteUses());
  if (jwts) {
    const refresh = () => jwts.keys.refresh();
    tasks.start("issuer key refresh", intervals.refreshIssuerKeysMs, refresh, "at once");
  }
  return tasks;
}

/** The tasks that one thread does for the whole process. */
export function startProcessTasks(
  storage: Storage,
  readiness: Readiness,
  { intervals, events, usage }: Pick<Config, "events" | "usage"> & { intervals: Intervals },
  log: Log,
  metrics: Metrics,
): PeriodicTasks {
  const tasks = new PeriodicTasks(log, readiness);
  const measure = async () => {
    metrics.sizes = await storage.measure();
  };
  tasks.start("size check", intervals.measureStorageMs, measure, "at once");
  tasks.start("idempotency key cleanup", intervals.forgetIdempotencyKeysMs, async () => {
    while (await storage.forgetKeys(Date.now() - keyGraceMs));
  });
  const forgetEvents = async () => {
    const beforeMs = events === "off" ? Number.MAX_SAFE_INTEGER : Date.now() - events;
    let garden: string | undefined = "";
    while (garden !== undefined) {
      garden = await storage.forgetEvents(beforeMs, garden);
      await Bun.sleep(stepPauseMs);
    }
  };
  // If events are off, old ones are deleted at once: otherwise a client could resume across the gap
  // once they're on again.
  const first = events === "off" ? "at once" : "later";
  const { forgetEventsMs, forgetEventsUnderQuotaMs } = intervals;
  const everyMs = usage.plantsMax === undefined ? forgetEventsMs : forgetEventsUnderQuotaMs;
  tasks.start("event cleanup", everyMs, forgetEvents, first);
  return tasks;
}

class PeriodicTasks {
  readonly #timers: Timer[] = [];

  constructor(
    private readonly log: Log,
    private readonly readiness: Readiness,
  ) {}

  /** The task never runs twice at once. A failure is logged, and the task runs again later. */
  start(
    name: string,
    everyMs: number,
    run: () => Promise<void>,
    first: "later" | "at once" = "later",
  ): void {
    let isRunning = false;
    const runOnce = async () => {
      if (isRunning) return;
      isRunning = true;
      try {
        await run();
      } catch (error) {
        const logIt = () => this.log.event("warn", `${name} failed`, { error });
        await this.readiness.logUnlessLost(error, logIt);
      } finally {
        isRunning = false;
      }
    };
    if (first === "at once") runOnce();
    this.#timers.push(setInterval(runOnce, everyMs));
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}
