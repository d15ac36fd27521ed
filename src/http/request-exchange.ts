/**
 * A request and what is learnt of it on its way: each stage adds to it, and the end tells of it.
 */
import type { RequestTrace } from "../tracing/request-trace.ts";
import { mayExceedLimit } from "./body.ts";
import type { Operation } from "./operation.ts";
import type { Arrival } from "./request.ts";
import type { Route } from "./router.ts";

export interface Exchange extends Arrival {
  readonly requestId: string;
  readonly startedAtMs: number;
  route: Route | undefined;
  operation: Operation | undefined;
  token: string | undefined;
  readonly trace: RequestTrace | undefined;
  /** Of the caller's bucket, with this request in it. */
  level: number | undefined;
  /** False: it waited too long and is refused. */
  isAdmitted: boolean;
}

/**
 * Whether the next request on the connection may not be seen as one: what is left of a body that
 * was not read to its end could pass for it, and behind a CONNECT the runtime sees no requests any
 * more.
 */
export function mayBeOutOfStep({ request, body }: Exchange): boolean {
  if (request.method === "CONNECT") return true;
  if (body !== "unread") return false;
  return request.bodyUsed || mayExceedLimit(request.headers);
}
