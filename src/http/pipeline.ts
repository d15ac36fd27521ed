/**
 * A request's way through the service. `handle` has its stages in order: each is a function over an
 * exchange that refuses it by an error, or lets it go on. One `catch` turns any error into a
 * problem.
 */
import { unauthenticated } from "../auth/authenticator.ts";
import { permits, type Scope } from "../domain/caller.ts";
import { PlantStoreError, refuse } from "../domain/errors.ts";
import { DropLimit } from "../limits/drop-limit.ts";
import { overloaded } from "../limits/overload.ts";
import type { Log } from "../shared/log.ts";
import { andThen, type MaybePromise } from "../shared/promises.ts";
import { Exchange } from "./exchange.ts";
import { preflightHeaders } from "./headers.ts";
import { readInput, readInputWithBody } from "./input.ts";
import type { Operation } from "./operation.ts";
import {
  plantOperations,
  redirectToConsole,
  serviceOperations,
  webPages,
} from "./operations/index.ts";
import { toProblem } from "./problem.ts";
import type { Reply } from "./reply.ts";
import { buildHeaders, respond } from "./response.ts";
import { createRouter, openPaths } from "./router.ts";
import type { Service } from "./service.ts";

export interface Pipeline {
  /**
   * A path that needs no token is refused unless it was sent exactly: a proxy's rule, such as one
   * for /metrics, may have missed the other spelling.
   */
  fetch(request: Request, isExactOpenPath?: boolean): Promise<Response>;
  readonly openPaths: readonly string[];
}

export function createPipeline(
  parts: Omit<Service, "findRoute" | "countOverload" | "dropLimit">,
): Pipeline {
  const { basePath, log } = parts;
  const operations = [
    ...plantOperations,
    ...serviceOperations,
    ...webPages,
    ...(basePath ? [redirectToConsole] : []),
  ];
  const service: Service = {
    ...parts,
    findRoute: createRouter(basePath, operations),
    countOverload: createOverloadLog(log),
    dropLimit: new DropLimit(parts.now),
  };
  return {
    fetch: (request, isExactOpenPath = true) => receive(service, request, isExactOpenPath),
    openPaths: openPaths(basePath, operations),
  };
}

/** Handles a request in its garden's turn. Avoids awaits: one costs as much as a cached list. */
function receive(service: Service, request: Request, isExactOpenPath: boolean): Promise<Response> {
  const { scheduler } = service;
  const nowMs = service.now();
  const exchange = new Exchange(service, request, isExactOpenPath, nowMs);
  if (!exchange.hasRoom || scheduler.mayRun(nowMs)) return handle(exchange);
  return scheduler.turn(exchange.queue).then((isLate) => {
    exchange.isLate = isLate;
    return handle(exchange);
  });
}

async function handle(exchange: Exchange): Promise<Response> {
  let reply: Reply;
  try {
    const operation = checkTarget(exchange); // 400, 404, 405
    if (operation !== "preflight" && operation.scope) {
      if (!exchange.caller) await identify(exchange); // 401, 503
      checkLimit(exchange); // 429
      checkScope(exchange, operation.scope); // 403
      refuseOverload(exchange); // 503
    }
    checkExpectation(exchange); // 417
    if (operation === "preflight") reply = answerPreflight(exchange);
    else {
      const made = findCached(exchange, operation) ?? run(exchange, operation); // 415, 413, 408, 400
      reply = made instanceof Promise ? await made : made;
    }
  } catch (error) {
    reply = toProblem(exchange, error);
  }
  // Sent at once, responses that overtake their bodies could keep the runtime accepting, responding
  // and closing, and nothing else would run. If they waited for a turn, more of the bodies would
  // arrive and take memory.
  const { scheduler } = exchange.service;
  if (exchange.hasUnreadBody && !scheduler.mayRun()) await scheduler.endOfTick();
  return respond(exchange, reply);
}

/** What is asked for: an operation or, by a browser, whether a page may call one. */
function checkTarget(exchange: Exchange): Operation | "preflight" {
  checkHost(exchange);
  if (exchange.hasUnreadBody) exchange.declaredBody.checkFraming();
  const { route, operation } = exchange;
  if (!route) throw new PlantStoreError("not-found", "There is nothing at this path.");
  if (route.isOpen && !exchange.isExactOpenPath && exchange.variable === "") throw inexactPath;
  if (operation) return operation;
  if (exchange.request.method === "OPTIONS" && route.hasPreflight) return "preflight";
  throw new PlantStoreError("method-not-allowed", `Use one of ${route.allow} here.`);
}

const hostPattern = /^(?:[\w.~%!$&'()*+;=-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** Repeated headers arrive joined by a comma. */
function checkHost({ request, route }: Exchange): void {
  const host = request.headers.get("host");
  // Load balancers' health checks often send HTTP/1.0 without it.
  const isAbsent = host === null && route?.isOpen === true;
  if (!isAbsent && !hostPattern.test(host ?? "")) throw invalidHost;
}

/** Finds the caller of a token that isn't cached. */
async function identify(exchange: Exchange): Promise<void> {
  if (exchange.token === undefined) throw unauthenticated;
  exchange.identify(await exchange.service.authenticator.authenticate(exchange.token));
}

/** A request counts toward its caller's rate even if it's refused later. */
function checkLimit(exchange: Exchange): void {
  const { caller, service } = exchange;
  if (!caller || !service.limiter) return;
  const level = service.limiter.take(caller);
  exchange.rateLevel = level;
  if (!service.limiter.permits(level)) throw tooMany;
}

function checkScope({ caller }: Exchange, scope: Scope): void {
  if (!caller) throw unauthenticated;
  if (!permits(caller, scope)) throw caller.scope ? readOnly : withoutScope;
}

/** After the token and its scope: strangers learn nothing about the load. */
function refuseOverload({ isLate, hasRoom }: Exchange): void {
  if (isLate || !hasRoom) throw overloaded;
}

/** The runtime answers no other expectation: the client would wait for a 100 that never comes. */
function checkExpectation({ declaredBody }: Exchange): void {
  if (!declaredBody.isExpectationMet) throw unknownExpectation;
}

function answerPreflight({ route }: Exchange): Reply {
  return { status: 204, headers: route && preflightHeaders(route) };
}

/** The cached list, if it is current. */
function findCached(exchange: Exchange, operation: Operation): Reply | undefined {
  const { caller, service } = exchange;
  if (!operation.isCacheable || !caller || exchange.hasUnreadBody) return undefined;
  // Read the version first: if a commit lands in between, the cached list counts as stale. It's kept
  // for the list that is read if there is none.
  exchange.version = service.readVersion(caller.garden);
  if (exchange.version === undefined) return undefined;
  return service.cache.find(cacheKey(exchange), exchange.version);
}

function run(exchange: Exchange, operation: Operation): MaybePromise<Reply> {
  const reply =
    operation.body || exchange.hasUnreadBody
      ? runOnceBodyIsRead(exchange, operation)
      : operation.run(exchange, readInput(operation, exchange));
  const { version } = exchange;
  return version === undefined
    ? reply
    : andThen(reply, (fresh) => addToCache(exchange, fresh, version));
}

async function runOnceBodyIsRead(exchange: Exchange, operation: Operation): Promise<Reply> {
  const input = await readInputWithBody(operation, exchange);
  // The token must still be valid when the body has arrived.
  await exchange.checkToken();
  return operation.run(exchange, input);
}

/** Returns the reply as it's sent from the cache, if it's worth caching. */
function addToCache(exchange: Exchange, reply: Reply, version: number): Reply {
  const { cache } = exchange.service;
  const key = cacheKey(exchange);
  if (!cache.noteRequest(key)) return reply;
  const built = buildHeaders(exchange, reply);
  cache.add(key, version, built);
  return built;
}

/** A garden's name holds no line break. */
function cacheKey({ caller, operation, query }: Exchange): string {
  return `${caller?.garden}\n${operation?.name}?${query}`;
}

const invalidHost = refuse({ header: "Host", detail: "must be given once and name a host." });

const inexactPath = refuse({
  parameter: "path",
  detail: "must be in its normal form, without dot segments and backslashes.",
});

const unknownExpectation = new PlantStoreError(
  "expectation-failed",
  "Leave out the header Expect, or send it as Expect: 100-continue, in lower case.",
);

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
