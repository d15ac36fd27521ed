/**
 * The pipeline of a request, stage by stage: the queue, host, path, method, token, rate, scope,
 * content type and body, the operation, the response. What waited too long in the queue is refused
 * after the scope. One catch turns an error into a problem, and one log line ends it.
 */
import { type Authenticator, tokenRefused } from "../auth/authenticator.ts";
import { type Caller, permits } from "../domain/caller.ts";
import { overloaded, PlantStoreError, refuse } from "../domain/errors.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { RateLimiter, UsageLimits } from "../rate-limit/rate-limiter.ts";
import type { BeginTrace } from "../tracing/request-trace.ts";
import { checkFraming, hasBody } from "./body.ts";
import { ResponseCache } from "./cache.ts";
import {
  createFinish,
  createOverloadLog,
  type Exchange,
  mustClose,
  type ReportFailure,
} from "./exchange.ts";
import {
  type AllowedOrigins,
  createLimitHeaders,
  createSharedHeaders,
  preflightHeaders,
} from "./headers.ts";
import type { Context, Operation, Reply } from "./operation.ts";
import { operations } from "./operations.ts";
import { problemReply, toPlantStoreError } from "./problem.ts";
import { checkHost, createRequestIds, readBearerToken, readInput, readTarget } from "./request.ts";
import { createRouter, openPaths } from "./router.ts";
import { streamText } from "./stream.ts";
import { redirectToConsole, webPages } from "./web-pages.ts";

interface AppDeps {
  readonly context: Context;
  readonly authenticator: Pick<Authenticator, "authenticate" | "findCached">;
  readonly log: Log;
  readonly reportFailure: ReportFailure;
  readonly metrics: Metrics;
  readonly allowedOrigins: AllowedOrigins;
  /** Whether the service itself speaks TLS. */
  readonly isSecure: boolean;
  /** Absent: no traces. */
  readonly beginTrace?: BeginTrace | undefined;
  readonly usage: UsageLimits;
  /** Absent: requests are not counted. */
  readonly limiter: RateLimiter | undefined;
}

export interface App {
  /**
   * Paths that need no token are refused where the path isn't exact: it was resolved from one that
   * a proxy's rules may not have recognised.
   */
  fetch(request: Request, isPathExact?: boolean): Response | Promise<Response>;
  readonly openPaths: readonly string[];
}

export function createApp(deps: AppDeps): App {
  const { context, authenticator, log, metrics, limiter } = deps;
  const { admission } = context;
  const setLimitHeaders = createLimitHeaders(deps.usage, limiter);
  const all = [...operations, ...webPages, ...(context.basePath ? [redirectToConsole] : [])];
  const findRoute = createRouter(context.basePath, all);
  const cache = new ResponseCache();
  const sharedHeaders = createSharedHeaders(deps.allowedOrigins, deps.isSecure);
  const requestIdOf = createRequestIds();
  const logOverload = createOverloadLog(log);
  const finishExchange = createFinish(log, metrics, deps.reportFailure);

  /** Synchronous where nothing must be looked up: a promise costs as much as a cached list. */
  function route(exchange: Exchange): Reply | Promise<Reply> {
    const { request } = exchange;
    const host = request.headers.get("host");
    const { path, query } = readTarget(request.url);
    const match = findRoute(path);
    // Health checks of load balancers often send HTTP/1.0 without it.
    if (host !== null || !match?.route.isOpen) checkHost(host);
    if (exchange.body !== "none") checkFraming(request.headers);
    exchange.query = query;
    if (!match) throw new PlantStoreError("not-found", "There is nothing at this path.");
    const { route } = match;
    exchange.route = route;
    exchange.variable = match.variable;

    if (request.method === "OPTIONS" && !route.isOpen) {
      return { status: 204, headers: preflightHeaders(route.allow) };
    }
    const operation = route.operations.get(request.method);
    if (!operation) {
      throw new PlantStoreError("method-not-allowed", `Use one of ${route.allow} here.`);
    }
    exchange.operation = operation;

    if (!operation.scope) {
      if (!exchange.isPathExact && match.variable === "") throw inexactPath;
      return runOperation(operation, exchange);
    }
    exchange.trace?.enter("authenticate");
    const token = readBearerToken(request.headers);
    if (token === undefined) return explain(tokenRefused, exchange);
    exchange.token = token;
    const caller = authenticator.findCached(token);
    if (caller) return authorize(caller, operation, exchange);
    return lookUp(token, exchange.deadlineMs).then((found) =>
      authorize(found, operation, exchange),
    );
  }

  /** A token that isn't cached costs a read like any other, of nobody in particular. */
  function lookUp(token: string, deadlineMs: number): Promise<Caller> {
    return admission.withPermit("read", "", deadlineMs, () => authenticator.authenticate(token));
  }

  /** The token must still be valid when a body has arrived, or a list goes on. */
  async function confirmToken({ token = "" }: Exchange): Promise<void> {
    if (!authenticator.findCached(token)) await lookUp(token, admission.deadline());
  }

  /** Checks the caller's rate limit and scope, then whether the request waited too long. */
  function authorize(
    caller: Caller,
    operation: Operation,
    exchange: Exchange,
  ): Reply | Promise<Reply> {
    exchange.caller = caller;
    if (limiter) {
      // Every request of the caller counts, even if it is refused later.
      exchange.level = limiter.take(caller);
      if (!limiter.permits(exchange.level)) return explain(tooMany, exchange);
    }
    if (operation.scope && !permits(caller, operation.scope)) {
      throw new PlantStoreError("forbidden", "This token may only read. Use one that may write.");
    }
    if (!exchange.isAdmitted) return explain(overloaded, exchange);
    const isCacheable = operation.isCacheable && exchange.body === "none";
    return isCacheable ? findOrRun(caller, operation, exchange) : runOperation(operation, exchange);
  }

  /** The cached reply, or a new one. */
  function findOrRun(
    caller: Caller,
    operation: Operation,
    exchange: Exchange,
  ): Reply | Promise<Reply> {
    // Read before the plants are: a list that misses a later commit must not count as current.
    const version = context.readVersion(caller.garden);
    if (!version) return runOperation(operation, exchange);
    // A garden's name holds no line break.
    const key = `${caller.garden}\n${operation.name}?${exchange.query}`;
    const cached = cache.find(key, version);
    if (cached) return cached;
    const making = runOperation(operation, exchange);
    if (!cache.isWanted(key)) return making;
    return making.then((reply) => {
      const ready = prepare(reply, exchange);
      cache.add(key, version, ready);
      return ready;
    });
  }

  async function runOperation(operation: Operation, exchange: Exchange): Promise<Reply> {
    const { scope, body } = operation;
    exchange.trace?.enter("read request");
    const input = await readInput(operation, exchange, admission);
    if (scope && body) await confirmToken(exchange);
    exchange.trace?.enter(operation.name);
    if (!scope) return operation.run(context, input);
    const permit = operation.isLong?.(input) ? "list" : scope;
    const run = () => operation.run(context, input);
    return admission.withPermit(permit, exchange.caller?.user ?? "", exchange.deadlineMs, run);
  }

  /** Builds the headers of a reply that is sent many times, unless they depend on the origin. */
  function prepare(reply: Reply, { request }: Exchange): Reply {
    if (deps.allowedOrigins !== "*") return reply;
    const prepared = new Headers(sharedHeaders("private", reply.contentType, request.headers));
    for (const name in reply.headers) prepared.set(name, reply.headers[name] as string);
    return { ...reply, prepared };
  }

  function explain(error: unknown, exchange: Exchange): Reply {
    const shown = toPlantStoreError(error);
    const { code, limit, tokenError } = shown;
    if (shown === overloaded) logOverload();
    else if (limit === "requests") metrics.countLimited(limit);
    else if (tokenError !== undefined) exchange.tokenError = tokenError;
    else if (limit === undefined && failureCodes.has(code)) {
      const { requestId } = exchange;
      const cause = code === "internal" ? shown.cause : shown;
      deps.reportFailure(shown, () =>
        log.event("error", "request failed", { requestId, code, error: cause }),
      );
    }
    const { requestId, token, route, level } = exchange;
    return problemReply(shown, {
      requestId,
      isTokenSent: token !== undefined,
      allow: route?.allow,
      nextSeconds: level === undefined ? undefined : limiter?.allowance(level).nextSeconds,
    });
  }

  /**
   * Makes a chunk of a long response, in turn with others. A list ends when its token does; the
   * results of a bulk request don't, because their plants are stored.
   */
  function pace<Chunk>(exchange: Exchange, make: () => Promise<Chunk>): Promise<Chunk> {
    const user = exchange.caller?.user ?? "";
    if (exchange.operation?.scope !== "read") return admission.turn(user).then(make);
    return admission.nextChunk(user, () => confirmToken(exchange).then(make));
  }

  function respond(exchange: Exchange, reply: Reply): Response {
    const { request, requestId } = exchange;
    const { status, contentType, body } = reply;
    exchange.trace?.enter("respond");
    const visibility = exchange.operation?.scope ? "private" : "public";
    const finish = (error?: unknown) => finishExchange(exchange, status, error);
    let content: string | Blob | ReadableStream | null = null;
    if (typeof body === "string" || body instanceof Blob) content = body;
    else if (request.method === "HEAD") body?.close();
    else if (body) content = streamText(body, (make) => pace(exchange, make), finish);

    const response = new Response(content, {
      status,
      headers: reply.prepared ?? sharedHeaders(visibility, contentType, request.headers),
    });
    const { headers } = response;
    headers.set("X-Request-Id", requestId);
    if (!reply.prepared) {
      for (const name in reply.headers) headers.set(name, reply.headers[name] as string);
    }
    if (setLimitHeaders && exchange.caller) setLimitHeaders(headers, exchange.level);
    // HEAD of a stream: as GET would have it. The runtime would send a length of 0.
    if (typeof body === "object" && content === null) headers.set("Transfer-Encoding", "chunked");
    // The runtime adds a date to all other responses.
    if (request.method === "HEAD") headers.set("Date", new Date().toUTCString());
    if (mustClose(exchange)) headers.set("Connection", "close");
    if (!(content instanceof ReadableStream)) finish();
    return response;
  }

  function handle(exchange: Exchange): Response | Promise<Response> {
    try {
      const reply = route(exchange);
      return reply instanceof Promise ? respondLater(exchange, reply) : respond(exchange, reply);
    } catch (error) {
      return respond(exchange, explain(error, exchange));
    }
  }

  async function respondLater(exchange: Exchange, reply: Promise<Reply>): Promise<Response> {
    try {
      return respond(exchange, await reply);
    } catch (error) {
      return respond(exchange, explain(error, exchange));
    }
  }

  return {
    openPaths: openPaths(context.basePath, all),
    fetch(request, isPathExact = true) {
      const exchange: Exchange = {
        request,
        requestId: requestIdOf(request.headers),
        startedAtMs: performance.now(),
        deadlineMs: admission.deadline(),
        trace: deps.beginTrace?.(request.headers),
        isPathExact,
        isAdmitted: true,
        query: "",
        route: undefined,
        variable: "",
        operation: undefined,
        token: undefined,
        tokenError: undefined,
        caller: undefined,
        level: undefined,
        body: hasBody(request.headers) ? "unread" : "none",
        held: undefined,
      };
      return admission.start(exchange.deadlineMs, (isAdmitted) => {
        exchange.isAdmitted = isAdmitted;
        return handle(exchange);
      });
    },
  };
}

/** Failures of the service, not of the request. */
const failureCodes: ReadonlySet<string> = new Set(["internal", "unavailable", "storage-full"]);

const inexactPath = refuse({
  parameter: "path",
  detail: "must be in its normal form, without dot segments and backslashes.",
});

/** Made once, so that its problem is rendered once. */
const tooMany = new PlantStoreError(
  "rate-limited",
  "This token has made too many requests. Wait as many seconds as Retry-After says.",
  { limit: "requests" },
);
