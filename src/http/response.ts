/** Turns a reply into the response that the runtime sends, and ends its exchange. */
import type { Exchange } from "./exchange.ts";
import type { Visibility } from "./headers.ts";
import type { Reply } from "./reply.ts";
import { streamChunks } from "./stream.ts";
import { fateOfConnection } from "./unread-body.ts";

/** A response without a stream ends its exchange at once. A stream ends it when it was sent. */
export function respond(exchange: Exchange, reply: Reply): Response {
  const { request, caller, rateLevel, service } = exchange;
  const { status, body, contentType, builtHeaders } = reply;
  const content = openContent(exchange, reply);
  const response = new Response(content, {
    status,
    headers:
      builtHeaders ??
      service.headers.shared(visibilityOf(exchange, status), contentType, request.headers),
  });
  const { headers } = response;
  headers.set("X-Request-Id", exchange.requestId);
  if (!builtHeaders) setHeaders(headers, reply);
  if (caller) service.headers.setLimits?.(headers, rateLevel);
  // HEAD of a stream: as GET would have it. The runtime would send a length of 0.
  if (body && content === null) headers.set("Transfer-Encoding", "chunked");
  // The runtime adds a date to all other responses.
  if (request.method === "HEAD") headers.set("Date", new Date().toUTCString());
  const fate = fateOfConnection(exchange);
  if (fate === "ends") headers.set("Connection", "close");
  // Not while it sends a stream: that would end the stream, too.
  const isStream = content instanceof ReadableStream;
  if (fate === "stays for some seconds" && !isStream) service.connections.closeLater(request);
  if (reply.isLive || !isStream) exchange.end(status);
  return response;
}

/** Builds the headers of a reply that is sent many times, unless they depend on the origin. */
export function buildHeaders(exchange: Exchange, reply: Reply): Reply {
  const { headers } = exchange.service;
  if (headers.dependOnOrigin) return reply;
  const shared = headers.shared("private", reply.contentType, exchange.request.headers);
  const builtHeaders = new Headers(shared);
  setHeaders(builtHeaders, reply);
  return { ...reply, builtHeaders };
}

function setHeaders(headers: Headers, reply: Reply): void {
  for (const name in reply.headers) headers.set(name, reply.headers[name] as string);
}

/** What the response sends. The end of a stream is the end of its exchange, unless it's live. */
function openContent(
  exchange: Exchange,
  { status, body, isLive }: Reply,
): string | Uint8Array<ArrayBuffer> | ReadableStream | null {
  if (body === undefined) return null;
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  if (exchange.request.method === "HEAD") {
    body.close();
    return null;
  }
  if (isLive) return streamChunks(body);
  return streamChunks(
    body,
    () => waitForChunk(exchange),
    (error) => exchange.end(status, error),
  );
}

/**
 * Resolves when the next chunk of a long response may be made. A list ends when its token does; the
 * results of a bulk request don't, because their plants are stored.
 */
async function waitForChunk(exchange: Exchange): Promise<void> {
  await exchange.turn();
  if (exchange.operation?.scope === "read") await exchange.checkToken();
}

/** What isn't there may be soon, like a file of the next version's pages. */
function visibilityOf({ route }: Exchange, status: number): Visibility {
  if (!route?.isOpen || status === 404) return "private";
  return route.isProbe ? "probe" : "public";
}
