/**
 * A request's way through the service, stage by stage: host, path, method, token, rate, scope,
 * body, operation, response. One `catch` turns an error into a problem, and one log line ends it.
 * `admission.ts` decides when a request begins.
 */
import { type Authenticator, unauthenticated } from "../auth/authenticator.ts";
import { type Caller, permits, type Scope } from "../domain/caller.ts";
import { overloaded, PlantStoreError, refuse } from "../domain/errors.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { Admission } from "./admission.ts";
import { checkFraming } from "./body.ts";
import { ResponseCache } from "./cache.ts";
import {
  type AllowedOrigins,
  createLimitHeaders,
  createSharedHeaders,
  preflightHeaders,
} from "./headers.ts";
import { checkHost, createReceive, type IncomingRequest } from "./incoming.ts";
import type { Context, Operation, Reply } from "./operation.ts";
import { operations } from "./operations.ts";
import { problemReply, toPlantStoreError } from "./problem.ts";
import type { RateLimiter, UsageLimits } from "./rate-limiter.ts";
import { readInput } from "./request.ts";
import { createOverloadLog, createRequestLog, type ReportFailure } from "./request-log.ts";
import type { Reservation, ReservedBytes } from "./reserved-bytes.ts";
import { createRouter, openPaths, type Route } from "./router.ts";
import type { Scheduler } from "./scheduler.ts";
import { serviceOperations } from "./service-operations.ts";
import { streamChunks } from "./stream.ts";
import { redirectToConsole, webPages } from "./web-pages.ts";

interface AppDeps {
  readonly context: Context;
  readonly authenticator: Pick<Authenticator, "authenticate" | "findCached" | "findGarden">;
  readonly scheduler: Scheduler;
  readonly reservedBytes: ReservedBytes;
  readonly log: Log;
  readonly reportFailure: ReportFailure;
  readonly metrics: Metrics;
  readonly allowedOrigins: AllowedOrigins;
  /** Whether the service itself speaks TLS. */
  readonly isSecure: boolean;
  readonly usage: UsageLimits;
  /** Absent: requests are not counted. */
  readonly limiter: RateLimiter | undefined;
}

export interface App {
  /**
   * A path that needs no token is refused unless it was sent exactly: a proxy's rule, such as one
   * for /metrics, may have missed the other spelling.
   */
  fetch(request: Request, isExactOpenPath?: boolean): Promise<Response>;
  readonly openPaths: readonly string[];
}

export function createApp(deps: AppDeps): App {
  const { context, authenticator, scheduler, reservedBytes, log, metrics, limiter } = deps;
  const setLimitHeaders = createLimitHeaders(deps.usage, limiter);
  const all = [
    ...operations,
    ...serviceOperations,
    ...webPages,
    ...(context.basePath ? [redirectToConsole] : []),
  ];
  const receive = createReceive(createRouter(context.basePath, all), authenticator);
  const cache = new ResponseCache();
  const admission = new Admission(scheduler, reservedBytes);
  const sharedHeaders = createSharedHeaders(deps.allowedOrigins, deps.isSecure);
  const logOverload = createOverloadLog(log);
  const logRequest = createRequestLog(log, metrics, deps.reportFailure);

  async function handle(
    incoming: IncomingRequest,
    reserved: Reservation,
    refusal?: PlantStoreError,
  ): Promise<Response> {
    const { body, token } = incoming;
    let caller = incoming.cachedCaller;
    let level: number | undefined;
    let tokenError: string | undefined;
    let reply: Reply;
    try {
      const route = checkTarget(incoming);
      const operation = checkMethod(incoming, route);
      if (!operation) reply = { status: 204, headers: preflightHeaders(route.allow) };
      else {
        if (operation.scope) {
          if (token === undefined) throw unauthenticated;
          caller ??= await authenticate(token, reserved);
          // Counts even if the request is refused later.
          level = limiter?.take(caller);
          checkCaller(caller, operation.scope, level);
          if (refusal) throw refusal;
        }
        if (operation.body) body.check(operation.body);
        const cached = findCachedReply(incoming, operation, caller);
        reply = cached ?? (await runOperation(incoming, operation, caller, reserved));
      }
    } catch (error) {
      const shown = toPlantStoreError(error);
      ({ tokenError } = shown);
      logAndCount(shown, incoming);
      reply = toProblem(shown, incoming, level);
    }
    if (admission.mustWait(incoming)) await admission.endOfTick();
    const { status } = reply;
    return respond(incoming, reply, caller, level, (error) => {
      reserved.release();
      logRequest(incoming, { status, caller, tokenError, error });
    });
  }

  async function authenticate(token: string, reserved: Reservation): Promise<Caller> {
    const caller = await authenticator.authenticate(token);
    reserved.moveTo(caller.garden);
    return caller;
  }

  function checkCaller(caller: Caller, scope: Scope, level: number | undefined): void {
    if (level !== undefined && !limiter?.permits(level)) throw tooMany;
    if (!permits(caller, scope)) throw caller.scope ? readOnly : withoutScope;
  }

  /** The cached response, if it is still current. */
  function findCachedReply(
    incoming: IncomingRequest,
    operation: Operation,
    caller: Caller | undefined,
  ): Reply | undefined {
    if (!caller || !isCacheable(incoming, operation)) return undefined;
    const version = context.readVersion(caller.garden);
    return version && cache.find(cacheKey(incoming, caller), version);
  }

  async function runOperation(
    incoming: IncomingRequest,
    operation: Operation,
    caller: Caller | undefined,
    reserved: Reservation,
  ): Promise<Reply> {
    const { token } = incoming;
    const input = await readInput(operation, incoming, caller, reserved, scheduler);
    // The token must still be valid when the body has arrived.
    if (operation.body && token !== undefined && !authenticator.findCached(token)) {
      await authenticator.authenticate(token);
    }
    if (!caller || !isCacheable(incoming, operation)) return operation.run(context, input);
    const key = cacheKey(incoming, caller);
    // Read the version first: if a commit lands in between, the cached list counts as stale.
    const version = context.readVersion(caller.garden);
    const reply = await operation.run(context, input);
    if (!version || !cache.noteRequest(key)) return reply;
    const built = buildHeaders(reply, incoming.request);
    cache.add(key, version, built);
    return built;
  }

  /** Builds the headers of a reply that is sent many times, unless they depend on the origin. */
  function buildHeaders(reply: Reply, request: Request): Reply {
    if (deps.allowedOrigins !== "*") return reply;
    const builtHeaders = new Headers(sharedHeaders("private", reply.contentType, request.headers));
    for (const name in reply.headers) builtHeaders.set(name, reply.headers[name] as string);
    return { ...reply, builtHeaders };
  }

  /** Logs and counts what the request's own log line doesn't say. */
  function logAndCount(error: PlantStoreError, { requestId }: IncomingRequest): void {
    const { code, limit, tokenError } = error;
    if (error === overloaded) logOverload();
    else if (limit === "requests" || limit === "streams") metrics.countLimited(limit);
    else if (tokenError === undefined && limit === undefined && failureCodes.has(code)) {
      const cause = code === "internal" ? error.cause : error;
      deps.reportFailure(error, () =>
        log.event("error", "request failed", { requestId, code, error: cause }),
      );
    }
  }

  function toProblem(
    error: PlantStoreError,
    incoming: IncomingRequest,
    level: number | undefined,
  ): Reply {
    const { requestId, token, route, operation } = incoming;
    return problemReply(error, {
      requestId,
      isTokenSent: token !== undefined,
      allow: route?.allow,
      otherType: operation?.body?.otherType,
      scope: operation?.scope,
      nextSeconds: level === undefined ? undefined : limiter?.allowance(level).nextSeconds,
    });
  }

  /**
   * Waits until the next chunk of a long response may be made. A list ends when its token does; the
   * results of a bulk request don't, because their plants are stored.
   */
  async function waitForChunk(
    { queueName, operation, token }: IncomingRequest,
    caller: Caller | undefined,
  ): Promise<void> {
    await scheduler.turn(caller?.garden ?? queueName);
    if (operation?.scope !== "read" || token === undefined) return;
    if (!authenticator.findCached(token)) await authenticator.authenticate(token);
  }

  function respond(
    incoming: IncomingRequest,
    reply: Reply,
    caller: Caller | undefined,
    level: number | undefined,
    onEnd: (error?: unknown) => void,
  ): Response {
    const { request, requestId, operation } = incoming;
    const { status, contentType, body, isLive } = reply;
    const open = incoming.route?.isProbe ? "probe" : "public";
    const visibility = operation?.scope ? "private" : open;
    let content: string | Uint8Array<ArrayBuffer> | ReadableStream | null = null;
    if (typeof body === "string" || body instanceof Uint8Array) content = body;
    else if (request.method === "HEAD") body?.close();
    else if (body && isLive) content = streamChunks(body);
    else if (body) content = streamChunks(body, () => waitForChunk(incoming, caller), onEnd);

    const response = new Response(content, {
      status,
      headers: reply.builtHeaders ?? sharedHeaders(visibility, contentType, request.headers),
    });
    const { headers } = response;
    headers.set("X-Request-Id", requestId);
    if (!reply.builtHeaders) {
      for (const name in reply.headers) headers.set(name, reply.headers[name] as string);
    }
    if (setLimitHeaders && caller) setLimitHeaders(headers, level);
    // HEAD of a stream: as GET would have it. The runtime would send a length of 0.
    if (body && content === null) headers.set("Transfer-Encoding", "chunked");
    // The runtime adds a date to all other responses.
    if (request.method === "HEAD") headers.set("Date", new Date().toUTCString());
    // After a CONNECT the runtime sees no more requests.
    if (incoming.body.mustClose || request.method === "CONNECT") headers.set("Connection", "close");
    if (isLive || !(content instanceof ReadableStream)) onEnd();
    return response;
  }

  return {
    openPaths: openPaths(context.basePath, all),
    fetch(request, isExactOpenPath = true) {
      return admission.admit(receive(request, isExactOpenPath, performance.now()), handle);
    },
  };
}

/** Fails if the request's host, framing or path is wrong. */
function checkTarget({ request, route, body, isExactOpenPath, variable }: IncomingRequest): Route {
  const host = request.headers.get("host");
  // Load balancers' health checks often send HTTP/1.0 without it.
  if (host !== null || !route?.isOpen) checkHost(host);
  if (body.isPending) checkFraming(request.headers);
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

function isCacheable({ body }: IncomingRequest, operation: Operation): boolean {
  return operation.isCacheable === true && !body.isPending;
}

/** A garden's name holds no line break. */
function cacheKey({ operation, query }: IncomingRequest, { garden }: Caller): string {
  return `${garden}\n${operation?.name}?${query}`;
}

/** Failures of the service, not of the request. */
const failureCodes: ReadonlySet<string> = new Set(["internal", "unavailable", "storage-full"]);

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
