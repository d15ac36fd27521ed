/** What a hostile client sends, byte for byte, and the one way in which it is answered. */

/** Waits a little, so that what follows comes in a packet of its own. */
export const pause = Symbol("pause");
/** Waits for the next answer before going on. */
export const answered = Symbol("answered");
/** Closes the client's side; it goes on reading. */
export const halfClose = Symbol("half-close");
/** Breaks the connection off. */
export const leave = Symbol("leave");

export type Step = string | typeof pause | typeof answered | typeof halfClose | typeof leave;

/**
 * `outcome` is every status that comes, in order, and what becomes of the connection: "open" for
 * the next request, "closed", or "waiting" for more of this one. So "closed" alone: without an
 * answer.
 */
export type HostileCase = readonly [name: string, sent: string | readonly Step[], outcome: string];

/** Stands for the real token, which is as long, so that lengths can be counted beforehand. */
export const tokenPlaceholder = `plant_${"T".repeat(49)}`;

/** A plant that is there before every case. It must be there after every case too. */
export const victimId = 7;

export const host = "Host: plants.example";
export const authorization = `Authorization: Bearer ${tokenPlaceholder}`;
export const json = "Content-Type: application/json";
export const chunked = "Transfer-Encoding: chunked";

/** A head of any kind: its lines, ended as they should be. */
export function head(...lines: readonly string[]): string {
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** A good request for a short list, with more headers. */
export function get(...headers: readonly string[]): string {
  return head("GET /plants?limit=0 HTTP/1.1", host, authorization, ...headers);
}

/** The head of a create; the headers say how its body is framed. */
export function post(...headers: readonly string[]): string {
  return head("POST /plants HTTP/1.1", host, authorization, json, ...headers);
}

/** A good create, framed by its length. */
export function create(body: string, ...headers: readonly string[]): string {
  return post(`Content-Length: ${body.length}`, ...headers) + body;
}

/** What an attacker wants to run on somebody else's connection. */
export const smuggled = head(`DELETE /plants/${victimId} HTTP/1.1`, host, authorization);

export const fern = '{"name":"Fern"}';

export function chunk(data: string): string {
  return `${data.length.toString(16)}\r\n${data}\r\n`;
}

export const lastChunk = "0\r\n\r\n";
