/** What one thread serves requests with. `process/wire.ts` makes it, once. */
import type { Authenticator } from "../auth/authenticator.ts";
import type { PlantStorage } from "../domain/ports.ts";
import type { DropLimit } from "../limits/drop-limit.ts";
import type { RateLimiter } from "../limits/rate-limiter.ts";
import type { ReservedBytes } from "../limits/reserved-bytes.ts";
import type { Scheduler } from "../limits/scheduler.ts";
import type { Log } from "../shared/log.ts";
import type { Metrics } from "../shared/metrics.ts";
import type { ResponseCache } from "./cache.ts";
import type { Connections } from "./connections.ts";
import type { ResponseHeaders } from "./headers.ts";
import type { Application } from "./operation.ts";
import type { Router } from "./router.ts";

export interface Service extends Application {
  readonly findRoute: Router;
  readonly nextRequestId: (headers: Headers) => string;

  // Whose request it is, and when it may go on.
  readonly authenticator: Pick<Authenticator, "authenticate" | "findCached" | "findGarden">;
  readonly scheduler: Scheduler;
  /** The time by which requests wait. */
  readonly now: () => number;
  readonly connections: Connections;
  readonly reservedBytes: ReservedBytes;
  /** Absent: requests are not counted. */
  readonly limiter: RateLimiter | undefined;

  // What responses are made of.
  readonly cache: ResponseCache;
  readonly readVersion: PlantStorage["version"];
  readonly headers: ResponseHeaders;
  readonly dropLimit: DropLimit;

  // What operators see.
  readonly metrics: Metrics;
  readonly log: Log;
  /** Counts a request that was refused for overload. */
  readonly countOverload: () => void;
  /** Calls `logIt` to log a failure, unless one line for all of them says why. */
  readonly reportFailure: (error: unknown, logIt: () => void) => void;
}
