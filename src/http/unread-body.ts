/**
 * What becomes of a connection whose request had a body that wasn't read to its end: the request was
 * refused, or its body is ignored. The client may be sending it until it sees the response.
 *
 * | body                                                     | connection                          |
 * |----------------------------------------------------------|-------------------------------------|
 * | declared, and not long                                   | stays; the runtime drops the rest   |
 * | chunked, while few of them are dropped                   | the same, but only for some seconds |
 * | longer; one chunked body too many; there was no room for | ends with the response              |
 * | it; late or broken; its client waits for a 100           |                                     |
 *
 * A connection that ends at once may take the response with it: clients that are still sending then
 * see a reset. One that stays must not take the rest of a body for the next request.
 */
import type { Exchange } from "./exchange.ts";

type ConnectionFate = "stays" | "stays for some seconds" | "ends";

/** If a body declares more, the rest isn't dropped. */
export const droppedBytesMax = 1024 * 1024;
/**
 * How many chunked bodies a second are dropped. The runtime parses what it drops: without a bound,
 * 100 connections held others up for half a second.
 */
const droppedPerSecondMax = 16;

export function fateOfConnection(exchange: Exchange): ConnectionFate {
  const { request, hasUnreadBody, declaredBody, service } = exchange;
  if (service.connections.areClosing()) return "ends";
  // After a CONNECT the runtime sees no more requests.
  if (request.method === "CONNECT") return "ends";
  if (!hasUnreadBody) return "stays";
  // Instead of the body, its client may send the next request.
  if (!declaredBody.isExpectationMet) return "ends";
  if (!exchange.hasRoom || exchange.isBodyBroken) return "ends";
  // It may be endless.
  if (declaredBody.isChunked) return service.dropLimit.take() ? "stays for some seconds" : "ends";
  const { bytes } = declaredBody;
  return bytes !== undefined && bytes <= droppedBytesMax ? "stays" : "ends";
}

/** Counts the chunked bodies that are dropped. */
export class DropLimit {
  #secondStartMs = Number.NEGATIVE_INFINITY;
  #dropped = 0;

  constructor(private readonly now: () => number) {}

  /** Whether one more may be dropped. */
  take(): boolean {
    const nowMs = this.now();
    if (nowMs - this.#secondStartMs >= 1_000) {
      this.#secondStartMs = nowMs;
      this.#dropped = 0;
    }
    return ++this.#dropped <= droppedPerSecondMax;
  }
}
