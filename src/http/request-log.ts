/** A request's end: counted and logged. */
import type { Caller } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { Log, LogLevel } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { IncomingRequest } from "./incoming.ts";
import type { Operation } from "./operation.ts";

interface End {
  readonly status: number;
  readonly caller: Caller | undefined;
  /** What is wrong with the token. */
  readonly tokenError: string | undefined;
  /** Why a stream broke off after its status was sent. */
  readonly error?: unknown;
}

/** Calls `logIt` to log a failure, unless one line for all of them says why. */
export type ReportFailure = (error: unknown, logIt: () => void) => void;

export function createRequestLog(
  log: Log,
  metrics: Metrics,
  report: ReportFailure,
): (incoming: IncomingRequest, end: End) => void {
  return (incoming, { status, caller, tokenError, error }) => {
    const { request, requestId, operation } = incoming;
    const { method } = request;
    const route = incoming.route?.path;
    const durationMs = performance.now() - incoming.startedAtMs;
    if (error instanceof PlantStoreError && error.code === "unauthenticated") {
      log.event("info", "list ended: its token is not valid any more", { requestId });
    } else if (error !== undefined) {
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
      garden: caller?.garden,
      tokenId: caller?.tokenId,
      tokenError,
      requestId,
      traceId: incoming.traceId,
    });
  };
}

/** The cause of a 5xx has a line of its own, where this one doesn't show it: see app.ts. */
function levelOf(operation: Operation | undefined, status: number): LogLevel {
  if (status >= 500) return "warn";
  return operation?.isProbe && status < 400 ? "debug" : "info";
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
