/** What the head of a request says: its target, its token, its id and its trace. */
import { holdsSecret } from "../auth/opaque-token.ts";

/** `new URL` is slow, and throws on an odd `Host`. */
export function readTarget(url: string): readonly [path: string, query: string] {
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
export function readBearerToken(headers: Headers): string | undefined {
  return /^bearer {1,16}(.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
}

/**
 * Whether `Accept` prefers a stream of events to JSON. If it likes both the same, the stream has to
 * be named, and before whatever stands for JSON.
 */
export function prefersEventStream(accept: string): boolean {
  const ranges = accept.split(",").map(readMediaRange);
  const stream = findRange(ranges, "text/event-stream", "text/*", "*/*");
  const json = findRange(ranges, "application/json", "application/*", "*/*");
  if (!stream || stream.quality === 0) return false;
  if (!json || stream.quality !== json.quality) return stream.quality > (json?.quality ?? 0);
  return stream.type === "text/event-stream" && ranges.indexOf(stream) < ranges.indexOf(json);
}

interface MediaRange {
  readonly type: string;
  readonly quality: number;
}

function readMediaRange(text: string): MediaRange {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const quality = Number(parameters.find((each) => each.startsWith("q="))?.slice(2) ?? 1);
  return { type, quality: Number.isNaN(quality) ? 1 : quality };
}

/** The range that counts for a type: the most specific one, whatever else it says. */
function findRange(
  ranges: readonly MediaRange[],
  ...types: readonly string[]
): MediaRange | undefined {
  for (const type of types) {
    const range = ranges.find((each) => each.type === type);
    if (range) return range;
  }
  return undefined;
}

const requestIdPattern = /^[\w.-]{1,128}$/;
/** The start of a token. */
const tokenPattern = /plant_[0-9a-z]{20}/i;

/** An id is logged and a token never is, so an id that holds one, or most of it, is replaced. */
function isUsable(id: string): boolean {
  return requestIdPattern.test(id) && !tokenPattern.test(id) && !holdsSecret(id);
}

/** Returns the id that the client sent, if it is well-formed, or a new one. */
export function createRequestIds(): (headers: Headers) => string {
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
export function readTraceId(headers: Headers): string | undefined {
  const traceparent = headers.get("traceparent");
  return traceparent === null ? undefined : traceparentPattern.exec(traceparent)?.[1];
}
