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
import { droppedBytesMax } from "./declared-body.ts";
import type { Exchange } from "./exchange.ts";

type ConnectionFate = "stays" | "stays for some seconds" | "ends";

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
