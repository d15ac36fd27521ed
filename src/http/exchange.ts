/** A request on its way through the pipeline, and its end: counted, logged and traced. */
import type { Caller } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { Log, LogLevel } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { RequestTrace } from "../tracing/request-trace.ts";
import type { Holding } from "./admission.ts";
import { mayExceedLimits } from "./body.ts";
import type { Operation } from "./operation.ts";
import type { Route } from "./router.ts";

/** What the stages of the pipeline have learned about a request so far. */
export interface Exchange {
  readonly request: Request;
  readonly requestId: string;
  readonly startedAtMs: number;
  /** Until when it may wait for its turn. It starts again when the body has arrived. */
  deadlineMs: number;
  readonly trace: RequestTrace | undefined;
  /** Whether the path was sent as it is seen here; the runtime resolves `/x/..` and `\`. */
  readonly isPathExact: boolean;
  /** False: it waited too long and is refused. */
  isAdmitted: boolean;
  query: string;
  route: Route | undefined;
  /** The variable segment of the path. */
  variable: string;
  operation: Operation | undefined;
  token: string | undefined;
  /** What is wrong with the token. */
  tokenError: string | undefined;
  caller: Caller | undefined;
  /** Of the caller's rate limit, with this request counted. */
  level: number | undefined;
  body: "none" | "unread" | "read";
  /** What the request holds in memory until its response is sent; absent if it has no body. */
  held: Holding | undefined;
}

/**
 * Whether the connection must be closed after the response: the rest of a body that was not read
 * could be taken for the next request, and after a CONNECT the runtime sees no more requests.
 */
export function mustClose({ request, body }: Exchange): boolean {
  if (request.method === "CONNECT") return true;
  if (body !== "unread") return false;
  return request.bodyUsed || mayExceedLimits(request.headers);
}

/** Calls `write` to log a failure, unless one line for all of them says why. */
export type ReportFailure = (error: unknown, write: () => void) => void;

/** Counts, logs and traces a request. `error` is why a stream broke off after its status. */
type Finish = (exchange: Exchange, status: number, error?: unknown) => void;

export function createFinish(log: Log, metrics: Metrics, report: ReportFailure): Finish {
  return (exchange, status, error) => {
    const { request, requestId, operation, caller, trace } = exchange;
    exchange.held?.[Symbol.dispose]();
    const { method } = request;
    const route = exchange.route?.path;
    const garden = caller?.garden;
    const durationMs = performance.now() - exchange.startedAtMs;
    if (isRevocation(error))
      log.event("info", "list ended: its token is not valid any more", { requestId });
    else if (error !== undefined) {
      metrics.countBrokenStream();
      report(error, () => log.event("error", "stream broke off", { requestId, error }));
    }
    metrics.countRequest(operation?.name ?? "none", method, status, durationMs);
    log.request(levelOf(operation, status), {
      method,
      route: route ?? "none",
      status,
      durationMs,
      user: caller?.user,
      garden,
      tokenId: caller?.tokenId,
      tokenError: exchange.tokenError,
      requestId,
      traceId: trace?.context.traceId,
    });
    trace?.end({ method, route, status, requestId, garden });
  };
}

/** What caused a 5xx is an event of its own, at level `error`. */
function levelOf(operation: Operation | undefined, status: number): LogLevel {
  if (status >= 500) return "warn";
  return operation?.isProbe && status < 400 ? "debug" : "info";
}

function isRevocation(error: unknown): boolean {
  return error instanceof PlantStoreError && error.code === "unauthenticated";
}

const overloadLogMs = 1_000;

/** Logs how many requests were refused for overload, once a second: a line each would add to it. */
export function createOverloadLog(log: Log): () => void {
  let refused = 0;
  function write(): void {
    log.event("warn", "overloaded", { refused });
    refused = 0;
  }
  return () => {
    refused++;
    if (refused === 1) setTimeout(write, overloadLogMs).unref();
  };
}
