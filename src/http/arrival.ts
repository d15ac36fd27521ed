/** What is known of a request when it arrives, before it waits for its turn. Nothing here fails. */
import { noGarden } from "../async/fair-queue.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Caller } from "../domain/caller.ts";
import type { BeginTrace, RequestTrace } from "../tracing/request-trace.ts";
import { IncomingBody } from "./body.ts";
import type { Operation } from "./operation.ts";
import { createRequestIds, readBearerToken, readTarget } from "./request.ts";
import type { Route, Router } from "./router.ts";

export interface Arrival {
  readonly request: Request;
  readonly requestId: string;
  readonly startedAtMs: number;
  readonly trace: RequestTrace | undefined;
  /** Whether the path was sent as it is seen here; the runtime resolves `/x/..` and `\`. */
  readonly isPathExact: boolean;
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
  /** The queue that it waits in: its garden's, or one for everyone who calls this open path. */
  readonly queue: string;
}

export type Receive = (request: Request, isPathExact: boolean, nowMs: number) => Arrival;

export function createReceive(
  findRoute: Router,
  authenticator: Pick<Authenticator, "findCached">,
  beginTrace: BeginTrace | undefined,
): Receive {
  const requestIdOf = createRequestIds();
  return (request, isPathExact, startedAtMs) => {
    const { path, query } = readTarget(request.url);
    const match = findRoute(path);
    const operation = match?.route.operations.get(request.method);
    const token = operation?.scope && readBearerToken(request.headers);
    const cachedCaller = token === undefined ? undefined : authenticator.findCached(token);
    return {
      request,
      requestId: requestIdOf(request.headers),
      startedAtMs,
      trace: beginTrace?.(request.headers),
      isPathExact,
      query,
      route: match?.route,
      variable: match?.variable ?? "",
      operation,
      token,
      cachedCaller,
      body: new IncomingBody(request),
      queue: cachedCaller?.garden ?? openQueue(operation),
    };
  };
}

/** Requests without a known token share a queue, and so do those for each path that needs none. */
function openQueue(operation: Operation | undefined): string {
  return operation && !operation.scope ? noGarden + operation.name : noGarden;
}
