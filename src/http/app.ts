/**
 * A request's way through the service, stage by stage: host, path, method, token, rate, scope,
 * expectation, body, operation, response. One `catch` turns an error into a problem, and one log line ends it.
 * `admit` decides when a request begins.
 */
import { type Authenticator, unauthenticated } from "../auth/authenticator.ts";
import { type Caller, permits, type Scope } from "../domain/caller.ts";
import { overloaded, PlantStoreError, refuse } from "../domain/errors.ts";
import type { Log, LogLevel } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { checkExpectation, checkFraming, createDropLimit } from "./body.ts";
import { ResponseCache } from "./cache.ts";
import {
  type AllowedOrigins,
  createLimitHeaders,
  createSharedHeaders,
  preflightHeaders,
  type Visibility,
} from "./headers.ts";
import { createReceive, type IncomingRequest } from "./incoming.ts";
import type { Context, Operation, Reply } from "./operation.ts";
import { operations, serviceOperations } from "./operations.ts";
import { problemReply, toPlantStoreError } from "./problem.ts";
import type { RateLimiter, UsageLimits } from "./rate-limiter.ts";
import { readInput } from "./request.ts";
import type { Reservation, ReservedBytes } from "./reserved-bytes.ts";
import { createRouter, openPaths, type Route } from "./router.ts";
import type { Scheduler } from "./scheduler.ts";
import { streamChunks } from "./stream.ts";
import { redirectToConsole, webPages } from "./web-pages.ts";

interface AppDeps {
  readonly context: Context;
  readonly authenticator: Pick<Authenticator, "authenticate" | "findCached" | "findGarden">;
  readonly scheduler: Scheduler;
  readonly reservedBytes: ReservedBytes;
  readonly log: Log;
  /** Calls `logIt` to log a failure, unless one line for all of them says why. */
  readonly reportFailure: (error: unknown, logIt: () => void) => void;
  readonly metrics: Metrics;
  readonly allowedOrigins: AllowedOrigins;
  /** Whether the service itself speaks TLS. */
  readonly isSecure: boolean;
  readonly usage: UsageLimits;
  /** Absent: requests are not counted. */
  readonly limiter: RateLimiter | undefined;
  /** The time by which requests wait. */
  readonly now: () => number;
}

export interface App {
  /**
   * A path that needs no token is refused unless it was sent exactly: a proxy's rule, such as one
   * for /metrics, may have missed the other spelling.
   */
  fetch(request: Request, isExactOpenPath?: boolean): Promise<Response>;
  readonly openPaths: readonly string[];
  /**
   * Closes a request's connection in a few seconds, unless the next request arrives on it before.
   * The server sets it.
   */
  closeLater: (request: Request) => void;
}

/** What the stages have found out about a request so far. */
interface Found {
  caller: Caller | undefined;
  /** What the rate limiter found, if there is one. */
  level: number | undefined;
  /** What is wrong with the token. */
  tokenError: string | undefined;
}

export function createApp(deps: AppDeps): App {
  const { context, authenticator, scheduler, reservedBytes, log, metrics, limiter, now } = deps;
  const setLimitHeaders = createLimitHeaders(deps.usage, limiter);
  const all = [
    ...operations,
    ...serviceOperations,
    ...webPages,
    ...(context.basePath ? [redirectToConsole] : []),
  ];
  const receive = createReceive(createRouter(context.basePath, all), authenticator);
  const cache = new ResponseCache();
  const sharedHeaders = createSharedHeaders(deps.allowedOrigins, deps.isSecure);
  const countOverload = createOverloadLog(log);
  const mayDropBody = createDropLimit(now);

  /**
   * Runs `handle` in its garden's turn. A long body reserves its memory before it waits: the
   * runtime keeps what arrives until it's read. A request is refused if there is no room for its
   * body, or if it waited too long. Avoids awaits: one costs as much as sending a cached list.
   */
  function admit(incoming: IncomingRequest): Promise<Response> {
    const { body, queueName, startedAtMs } = incoming;
    const reserved = reservedBytes.open(queueName);
    if (body.isLong && !reserved.tryAdd(body.bytesToReserve)) {
      body.isRefused = true;
      return handle(incoming, reserved, overloaded);
    }
    if (scheduler.mayRun(startedAtMs)) return handle(incoming, reserved);
    return scheduler
      .turn(queueName)
      .then((isLate) => handle(incoming, reserved, isLate ? overloaded : undefined));
  }

  /** `refusal`: why a request that needs a token is refused. */
  async function handle(
    incoming: IncomingRequest,
    reserved: Reservation,
    refusal?: PlantStoreError,
  ): Promise<Response> {
    const { body, cachedCaller: caller } = incoming;
    const found: Found = { caller, level: undefined, tokenError: undefined };
    let reply: Reply;
    try {
      checkHost(incoming);
      const route = checkPath(incoming);
      const operation = checkMethod(incoming, route);
      if (operation?.scope) {
        found.caller ??= await authenticate(incoming, reserved);
        // Counts even if the request is refused later.
        found.level = limiter?.take(found.caller);
        checkRate(found.level);
        checkScope(found.caller, operation.scope);
        if (refusal) throw refusal;
      }
      checkExpectation(incoming.request.headers);
      if (operation?.body) body.check(operation.body);
      reply = operation
        ? (findCachedReply(incoming, found) ?? (await run(operation, incoming, found, reserved)))
        : { status: 204, headers: preflightHeaders(route.allow) };
    } catch (error) {
      reply = toProblem(toPlantStoreError(error), incoming, found);
    }
    // Sent at once, responses that overtake their bodies could keep the runtime accepting,
    // responding and closing, and nothing else would run. If they waited for a turn, more of the
    // bodies would arrive and take memory.
    if (body.isPending && !scheduler.mayRun()) await scheduler.endOfTick();
    const { status } = reply;
    return respond(incoming, reply, found, (error) => {
      reserved.release();
      logRequest(incoming, status, found, error);
    });
  }

  /** Fails if the garden that the token opens has no room for the body. */
  async function authenticate(incoming: IncomingRequest, reserved: Reservation): Promise<Caller> {
    const { token, body } = incoming;
    if (token === undefined) throw unauthenticated;
    const caller = await authenticator.authenticate(token);
    if (reserved.tryMoveTo(caller.garden)) return caller;
    body.isRefused = true;
    throw overloaded;
  }

  function checkRate(level: number | undefined): void {
    if (level !== undefined && !limiter?.permits(level)) throw tooMany;
  }

  /** The cached response, if it is still current. */
  function findCachedReply(incoming: IncomingRequest, { caller }: Found): Reply | undefined {
    if (!caller || !isCacheable(incoming)) return undefined;
    const version = context.readVersion(caller.garden);
    return version && cache.find(cacheKey(incoming, caller), version);
  }

  async function run(
    operation: Operation,
    incoming: IncomingRequest,
    { caller }: Found,
    reserved: Reservation,
  ): Promise<Reply> {
    const input = await readInput(operation, incoming, caller, reserved, scheduler);
    // The token must still be valid when the body has arrived.
    if (operation.body) await checkToken(incoming);
    if (!caller || !isCacheable(incoming)) return operation.run(context, input);
    // Read the version first: if a commit lands in between, the cached list counts as stale.
    const version = context.readVersion(caller.garden);
    const reply = await operation.run(context, input);
    const key = cacheKey(incoming, caller);
    if (!version || !cache.noteRequest(key)) return reply;
    const built = buildHeaders(reply, incoming.request);
    cache.add(key, version, built);
    return built;
  }

  /** Fails if a token that was valid isn't any more. */
  async function checkToken({ token }: IncomingRequest): Promise<void> {
    if (token === undefined || authenticator.findCached(token)) return;
    await authenticator.authenticate(token);
  }

  /** Builds the headers of a reply that is sent many times, unless they depend on the origin. */
  function buildHeaders(reply: Reply, request: Request): Reply {
    if (deps.allowedOrigins !== "*") return reply;
    const builtHeaders = new Headers(sharedHeaders("private", reply.contentType, request.headers));
    for (const name in reply.headers) builtHeaders.set(name, reply.headers[name] as string);
    return { ...reply, builtHeaders };
  }

  function toProblem(error: PlantStoreError, incoming: IncomingRequest, found: Found): Reply {
    const { level } = found;
    found.tokenError = error.tokenError;
    logFailure(error, incoming, found.caller);
    const nextSeconds = level === undefined ? undefined : limiter?.allowance(level).nextSeconds;
    return problemReply(error, incoming, nextSeconds);
  }

  /** Logs and counts what the request's own log line doesn't say. */
  function logFailure(
    error: PlantStoreError,
    { requestId }: IncomingRequest,
    caller: Caller | undefined,
  ): void {
    const { code, limit, tokenError } = error;
    if (error === overloaded) countOverload();
    else if (limit === "requests" || limit === "streams") metrics.countLimited(limit);
    else if (tokenError === undefined && limit === undefined && failureCodes.has(code)) {
      const cause = code === "internal" ? error.cause : error;
      const { user, garden } = caller ?? {};
      deps.reportFailure(error, () =>
        log.event("error", "request failed", { requestId, user, garden, code, error: cause }),
      );
    }
  }

  function respond(
    incoming: IncomingRequest,
    reply: Reply,
    { caller, level }: Found,
    onEnd: (error?: unknown) => void,
  ): Response {
    const { request } = incoming;
    const { status, contentType, body, isLive, builtHeaders } = reply;
    const content = openContent(incoming, reply, caller, onEnd);
    const response = new Response(content, {
      status,
      headers: builtHeaders ?? sharedHeaders(visibilityOf(incoming), contentType, request.headers),
    });
    const { headers } = response;
    headers.set("X-Request-Id", incoming.requestId);
    if (!builtHeaders) {
      for (const name in reply.headers) headers.set(name, reply.headers[name] as string);
    }
    if (setLimitHeaders && caller) setLimitHeaders(headers, level);
    // HEAD of a stream: as GET would have it. The runtime would send a length of 0.
    if (body && content === null) headers.set("Transfer-Encoding", "chunked");
    // The runtime adds a date to all other responses.
    if (request.method === "HEAD") headers.set("Date", new Date().toUTCString());
    if (mustClose(incoming)) headers.set("Connection", "close");
    if (isLive || !(content instanceof ReadableStream)) onEnd();
    return response;
  }

  /** Whether the connection ends with the response. */
  function mustClose({ request, body }: IncomingRequest): boolean {
    // After a CONNECT the runtime sees no more requests.
    if (body.mustClose || request.method === "CONNECT") return true;
    if (!body.isPending || !body.isChunked) return false;
    if (!mayDropBody()) return true;
    // It may be endless.
    app.closeLater(request);
    return false;
  }

  /** What the response sends. `onEnd` is called at the end of a stream, unless it's live. */
  function openContent(
    incoming: IncomingRequest,
    { body, isLive }: Reply,
    caller: Caller | undefined,
    onEnd: (error?: unknown) => void,
  ): string | Uint8Array<ArrayBuffer> | ReadableStream | null {
    if (body === undefined) return null;
    if (typeof body === "string" || body instanceof Uint8Array) return body;
    if (incoming.request.method === "HEAD") {
      body.close();
      return null;
    }
    if (isLive) return streamChunks(body);
    return streamChunks(body, () => waitForChunk(incoming, caller), onEnd);
  }

  /**
   * Waits until the next chunk of a long response may be made. A list ends when its token does; the
   * results of a bulk request don't, because their plants are stored.
   */
  async function waitForChunk(
    incoming: IncomingRequest,
    caller: Caller | undefined,
  ): Promise<void> {
    await scheduler.turn(caller?.garden ?? incoming.queueName);
    if (incoming.operation?.scope === "read") await checkToken(incoming);
  }

  /** The end of a request. `error`: why a stream broke off after its status was sent. */
  function logRequest(
    incoming: IncomingRequest,
    status: number,
    { caller, tokenError }: Found,
    error?: unknown,
  ): void {
    const { requestId, operation, traceId } = incoming;
    const { method } = incoming.request;
    const durationMs = now() - incoming.startedAtMs;
    if (error instanceof PlantStoreError && error.code === "unauthenticated") {
      log.event("info", "list ended: its token is not valid any more", { requestId });
    } else if (error !== undefined) {
      metrics.countBrokenStream();
      deps.reportFailure(error, () => log.event("error", "stream broke off", { requestId, error }));
    }
    metrics.countRequest(operation?.name ?? "none", method, status, durationMs);
    log.request(levelOf(operation, status), {
      method,
      route: incoming.route?.path ?? "none",
      status,
      durationMs,
      user: caller?.user,
      garden: caller?.garden,
      tokenId: caller?.tokenId,
      tokenError,
      requestId,
      traceId,
    });
  }

  const app: App = {
    openPaths: openPaths(context.basePath, all),
    fetch: (request, isExactOpenPath = true) => admit(receive(request, isExactOpenPath, now())),
    closeLater() {},
  };
  return app;
}

const hostPattern = /^(?:[\w.~%!$&'()*+;=-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Fails if the request's host or framing is wrong. Repeated headers arrive joined by a comma. */
function checkHost({ request, route, body }: IncomingRequest): void {
  const host = request.headers.get("host");
  // Load balancers' health checks often send HTTP/1.0 without it.
  const isAbsent = host === null && route?.isOpen === true;
  if (!isAbsent && !hostPattern.test(host ?? "")) throw invalidHost;
  if (body.isPending) checkFraming(request.headers);
}

function checkPath({ route, isExactOpenPath, variable }: IncomingRequest): Route {
  if (!route) throw new PlantStoreError("not-found", "There is nothing at this path.");
  if (route.isOpen && !isExactOpenPath && variable === "") throw inexactPath;
  return route;
}

/** The operation; absent for the preflight request of a browser. */
function checkMethod({ request, operation }: IncomingRequest, route: Route): Operation | undefined {
  const isPreflight = request.method === "OPTIONS" && !route.isOpen;
  if (operation || isPreflight) return operation;
  throw new PlantStoreError("method-not-allowed", `Use one of ${route.allow} here.`);
}

function checkScope(caller: Caller, scope: Scope): void {
  if (!permits(caller, scope)) throw caller.scope ? readOnly : withoutScope;
}

function isCacheable({ operation, body }: IncomingRequest): boolean {
  return operation?.isCacheable === true && !body.isPending;
}

/** A garden's name holds no line break. */
function cacheKey({ operation, query }: IncomingRequest, { garden }: Caller): string {
  return `${garden}\n${operation?.name}?${query}`;
}

function visibilityOf({ operation, route }: IncomingRequest): Visibility {
  if (operation?.scope) return "private";
  return route?.isProbe ? "probe" : "public";
}

/** Failures of the service, not of the request. */
const failureCodes: ReadonlySet<string> = new Set(["internal", "unavailable", "storage-full"]);

/** The cause of a 5xx has a line of its own, where this one doesn't show it: see `logFailure`. */
function levelOf(operation: Operation | undefined, status: number): LogLevel {
  if (status >= 500) return "warn";
  return operation?.isProbe && status < 400 ? "debug" : "info";
}

const overloadLogMs = 1_000;

/** Logs how many requests were refused for overload, once a second: a line each would add to it. */
function createOverloadLog(log: Log): () => void {
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

const invalidHost = refuse({ header: "Host", detail: "must be given once and name a host." });

const inexactPath = refuse({
  parameter: "path",
  detail: "must be in its normal form, without dot segments and backslashes.",
});

const readOnly = new PlantStoreError(
  "forbidden",
  "This token may only read. Use one that may write.",
);
const withoutScope = new PlantStoreError(
  "forbidden",
  "This token is valid, but may neither read nor write plants. Ask its issuer for a scope.",
  { tokenError: "scope" },
);

/** Made once, so that its problem is rendered once. */
const tooMany = new PlantStoreError(
  "rate-limited",
  "This token has made too many requests. Wait as many seconds as Retry-After says.",
  { limit: "requests" },
);
