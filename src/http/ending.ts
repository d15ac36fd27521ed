/** The end of a request: it is counted, logged and told to its trace, whatever became of it. */
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Exchange } from "./request-exchange.ts";

/** The error is of a stream that broke off, when the status had been sent. */
export type Ending = (exchange: Exchange, status: number, error?: unknown) => void;

export function createEnding(log: Log, metrics: Metrics): Ending {
  return (exchange, status, error) => {
    const { request, requestId, operation, caller, trace } = exchange;
    const { method } = request;
    const route = exchange.route?.path;
    const garden = caller?.garden;
    const durationMs = performance.now() - exchange.startedAtMs;
    if (error !== undefined) {
      metrics.countBrokenStream();
      log.event("error", "stream broke off", { requestId, error });
    }
    metrics.countRequest(operation?.name ?? "none", method, status, durationMs);
    log.request({
      method,
      route: route ?? "none",
      status,
      durationMs,
      user: caller?.user,
      garden,
      requestId,
      traceId: trace?.context.traceId,
    });
    trace?.end({ method, route, status, requestId, garden });
  };
}
