/** What is known of a request when it arrives, before it waits for its turn and is checked. */
import { noGarden } from "../async/fair-queue.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import { holdsSecret } from "../auth/opaque-token.ts";
import type { Caller } from "../domain/caller.ts";
import { IncomingBody } from "./body.ts";
import type { Operation } from "./operation.ts";
import type { Route, Router } from "./router.ts";

export interface IncomingRequest {
  readonly request: Request;
  readonly requestId: string;
  readonly startedAtMs: number;
  /** Of the trace that the caller is in, for the log; absent if it sent none. */
  readonly traceId: string | undefined;
  /**
   * Whether the path, exactly as it was sent, is one that needs no token. In all others, the
   * runtime has resolved `/x/..` and `\`.
   */
  readonly isExactOpenPath: boolean;
  readonly query: string;
  /** Absent: there is nothing at this path. */
  readonly route: Route | undefined;
  /** The path's variable segment. */
  readonly variable: string;
  /** Absent: the path doesn't have this method. */
  readonly operation: Operation | undefined;
  /** Absent if none was sent, or none is needed. */
  readonly token: string | undefined;
  /** Absent if the token isn't cached. */
  readonly cachedCaller: Caller | undefined;
  readonly body: IncomingBody;
  /**
   * Where it waits for its first turn: its garden's queue or, if that isn't known yet, a shared
   * one.
   */
  readonly queueName: string;
}

type Receive = (request: Request, isExactOpenPath: boolean, nowMs: number) => IncomingRequest;

export function createReceive(
  findRoute: Router,
  authenticator: Pick<Authenticator, "findCached" | "findGarden">,
): Receive {
  const requestIdOf = createRequestIds();
  return (request, isExactOpenPath, startedAtMs) => {
    const [path, query] = readTarget(request.url);
    const match = findRoute(path);
    const operation = match?.route.operations.get(request.method);
    const token = operation?.scope && readBearerToken(request.headers);
    const cachedCaller = token === undefined ? undefined : authenticator.findCached(token);
    const garden = cachedCaller?.garden ?? (token && authenticator.findGarden(token));
    return {
      request,
      requestId: requestIdOf(request.headers),
      startedAtMs,
      traceId: readTraceId(request.headers.get("traceparent")),
      isExactOpenPath,
      query,
      route: match?.route,
      variable: match?.variable ?? "",
      operation,
      token,
      cachedCaller,
      body: new IncomingBody(request),
      queueName: garden ?? sharedQueue(operation, token),
    };
  };
}

/**
 * Requests for a path that needs no token share a queue for each such path. Requests whose token
 * isn't known yet share one, and so do requests without a token.
 */
function sharedQueue(operation: Operation | undefined, token: string | undefined): string {
  if (operation && !operation.scope) return noGarden + operation.name;
  return token === undefined ? noGarden : `${noGarden}token`;
}

/** `new URL` is slow, and throws on an odd `Host`. */
function readTarget(url: string): readonly [path: string, query: string] {
  const authorityAt = url.startsWith("/") ? -1 : url.indexOf("://");
  const pathAt = authorityAt < 0 ? 0 : url.indexOf("/", authorityAt + 3);
  if (pathAt < 0) return ["/", ""];
  const queryAt = url.indexOf("?", pathAt);
  if (queryAt < 0) return [url.slice(pathAt), ""];
  return [url.slice(pathAt, queryAt), url.slice(queryAt + 1)];
}

/**
 * The token of `Authorization: Bearer <token>`, if there is one. A cached token keeps the whole
 * header in memory, so only a few spaces are allowed before it.
 */
function readBearerToken(headers: Headers): string | undefined {
  return /^bearer {1,16}(.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
}

const requestIdPattern = /^[\w.-]{1,128}$/;
/** The start of a token. */
const tokenPattern = /plant_[0-9a-z]{20}/i;

/** An id is logged and a token never is, so an id that holds one, or most of it, is replaced. */
function isUsable(id: string): boolean {
  return requestIdPattern.test(id) && !tokenPattern.test(id) && !holdsSecret(id);
}

/** The id that the client sent, if it is well-formed, or a new one. */
function createRequestIds(): (headers: Headers) => string {
  // A random prefix and a counter: unique, and cheap on the hot path.
  const prefix = crypto.randomUUID().slice(-12);
  let count = 0;
  return (headers) => {
    const given = headers.get("x-request-id");
    return given !== null && isUsable(given) ? given : `${prefix}-${(++count).toString(36)}`;
  };
}

const traceparentPattern = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(?:-|$)/;

/** From a header `traceparent` (W3C Trace Context). */
function readTraceId(traceparent: string | null): string | undefined {
  return traceparent === null ? undefined : traceparentPattern.exec(traceparent)?.[1];
}
