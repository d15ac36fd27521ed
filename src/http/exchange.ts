/**
 * One request and its response: what is known of it, what it holds, and its one end. The
 * constructor learns what can be known when the request arrives. `pipeline.ts` does the rest.
 */

import type { Caller } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { sharedQueue } from "../limits/fair-queue.ts";
import { isOverload, withoutRefusal } from "../limits/overload.ts";
import type { Reservation } from "../limits/reserved-bytes.ts";
import type { LogLevel } from "../shared/log.ts";
import { DeclaredBody } from "./declared-body.ts";
import type { Call, Operation } from "./operation.ts";
import { readBearerToken, readTarget, readTraceId } from "./request-head.ts";
import type { Route } from "./router.ts";
import type { Service } from "./service.ts";

export class Exchange implements Call {
  readonly requestId: string;
  /** Of the trace that the caller is in, for the log; absent if it sent none. */
  readonly traceId: string | undefined;
  readonly query: string;
  /** Absent: there is nothing at this path. */
  readonly route: Route | undefined;
  /** The path's variable segment. */
  readonly variable: string;
  /** Absent: the path doesn't have this method. */
  readonly operation: Operation | undefined;
  /** Absent if none was sent, or none is needed. */
  readonly token: string | undefined;
  /** Known at once if the token is cached. */
  caller: Caller | undefined;
  readonly declaredBody: DeclaredBody;
  /** Whether a part of the body hasn't been read. */
  hasUnreadBody: boolean;
  /** Whether the body came late, or not as it should. */
  isBodyBroken = false;
  /** The memory that it takes until it ends. */
  readonly reserved: Reservation;
  /** Whether there is room for its body. If not, it is refused unread. */
  hasRoom: boolean;
  /** Whether it waited too long for its turn. */
  isLate = false;
  /** What the rate limiter found, once it has counted the request. */
  rateLevel: number | undefined;
  /** The garden's version before anything was read, if the response may be cached. */
  version: number | undefined;
  /** Why the response is a problem, if it is one. */
  refusal: PlantStoreError | undefined;
  /** Until its caller is known: the garden that its token opened before, or a shared queue. */
  readonly #firstQueue: string;

  constructor(
    readonly service: Service,
    readonly request: Request,
    /** Whether the path was sent exactly as one that needs no token: see `Pipeline.fetch`. */
    readonly isExactOpenPath: boolean,
    private readonly startedAtMs: number,
  ) {
    const { authenticator, findRoute, nextRequestId, reservedBytes } = service;
    const { headers, method, url } = request;
    const [path, query] = readTarget(url);
    const match = findRoute(path);
    this.requestId = nextRequestId(headers);
    this.traceId = readTraceId(headers);
    this.query = query;
    this.route = match?.route;
    this.variable = match?.variable ?? "";
    this.operation = match?.route.operations.get(method);
    this.token = this.operation?.scope && readBearerToken(headers);
    const { token } = this;
    this.caller = token === undefined ? undefined : authenticator.findCached(token);
    const garden = token === undefined ? undefined : authenticator.findGarden(token);
    this.#firstQueue = garden ?? queueOf(this.operation, token);
    this.declaredBody = new DeclaredBody(headers);
    this.hasUnreadBody = this.declaredBody.isPresent;
    this.reserved = reservedBytes.open(this.queue);
    // Before it waits for its turn: the runtime keeps what arrives until it's read.
    const bytes = this.declaredBody.bytesToReserve;
    this.hasRoom = bytes === 0 || this.reserved.tryAdd(bytes);
  }

  /** The queue in which it waits: its garden's, or a shared one while that isn't known. */
  get queue(): string {
    return this.caller?.garden ?? this.#firstQueue;
  }

  /** Resolves when it may go on with long work. */
  turn(): Promise<unknown> {
    return this.service.scheduler.turn(this.queue);
  }

  /** From now on, the memory that it takes counts for the caller's garden. */
  identify(caller: Caller): void {
    this.caller = caller;
    this.hasRoom &&= this.reserved.tryMoveTo(caller.garden);
  }

  /** Fails if a token that was valid isn't any more. */
  async checkToken(): Promise<void> {
    const { token, service } = this;
    if (token === undefined || service.authenticator.findCached(token)) return;
    await withoutRefusal(() => service.authenticator.authenticate(token));
  }

  /**
   * Only response.ts calls it, once: at once if the body is whole, absent or live; otherwise when
   * the stream was sent, when its client has left, or with the error that broke it off.
   */
  end(status: number, error?: unknown): void {
    this.reserved.release();
    if (this.refusal) this.#reportRefusal(this.refusal);
    if (error !== undefined) this.#reportBrokenStream(error);
    const { operation, caller, requestId, traceId, service } = this;
    const { method } = this.request;
    const durationMs = this.service.now() - this.startedAtMs;
    service.metrics.countRequest(operation?.name ?? "none", method, status, durationMs);
    service.log.request(levelOf(operation, status), {
      method,
      route: this.route?.path ?? "none",
      status,
      durationMs,
      caller,
      tokenError: this.refusal?.tokenError,
      requestId,
      traceId,
    });
  }

  /** Logs and counts what the line of the request doesn't say. */
  #reportRefusal(refusal: PlantStoreError): void {
    const { requestId, service } = this;
    const { user, garden } = this.caller ?? {};
    const { code, limit, tokenError } = refusal;
    if (isOverload(refusal)) service.countOverload();
    else if (limit === "requests" || limit === "streams") service.metrics.countLimited(limit);
    else if (tokenError === undefined && limit === undefined && failureCodes.has(code)) {
      const error = code === "internal" ? refusal.cause : refusal;
      service.reportFailure(refusal, () =>
        service.log.event("error", "request failed", { requestId, user, garden, code, error }),
      );
    }
  }

  #reportBrokenStream(error: unknown): void {
    const { requestId, service } = this;
    if (error instanceof PlantStoreError && error.code === "unauthenticated") {
      service.log.event("info", "list ended: its token is not valid any more", { requestId });
      return;
    }
    service.metrics.countBrokenStream();
    service.reportFailure(error, () =>
      service.log.event("error", "stream broke off", { requestId, error }),
    );
  }
}

/**
 * Requests for a path that needs no token share a queue for each such path. Requests whose token
 * isn't known yet share one, and so do requests without a token.
 */
function queueOf(operation: Operation | undefined, token: string | undefined): string {
  if (operation && !operation.scope) return sharedQueue(operation.name);
  return sharedQueue(token === undefined ? "" : "token");
}

/** Failures of the service, not of the request. */
const failureCodes: ReadonlySet<string> = new Set(["internal", "unavailable", "storage-full"]);

/** The cause of a 5xx has a line of its own. */
function levelOf(operation: Operation | undefined, status: number): LogLevel {
  if (status >= 500) return "warn";
  return operation?.isProbe && status < 400 ? "debug" : "info";
}
