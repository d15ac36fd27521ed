/** What a hostile client sends, byte for byte, and the expected outcome. */

/** Waits a little, so that what follows is a packet of its own. */
export const pause = Symbol("pause");
/** Waits for the next response. */
export const answered = Symbol("answered");
/** Closes the client's side; it goes on reading. */
export const halfClose = Symbol("half-close");
/** Closes the connection. */
export const leave = Symbol("leave");

export type Step = string | typeof pause | typeof answered | typeof halfClose | typeof leave;

type Sent = string | readonly Step[];

/**
 * The outcome is every status in order, and what happens to the connection: "open" for the next
 * request, "closed", or "waiting" for more of this one. "closed" alone means no response,
 * and "refused" any status from 400 on.
 */
export type HostileCase = readonly [name: string, sent: Sent, outcome: string];

export function expecting(outcome: string, cases: Readonly<Record<string, Sent>>): HostileCase[] {
  return Object.entries(cases).map(([name, sent]) => [name, sent, outcome]);
}

/** Stands for the real token, and is as long, so that lengths can be computed beforehand. */
export const tokenPlaceholder = `plant_${"T".repeat(49)}`;

/** A plant that exists before every case, and must still exist after it. */
export const victimId = 7;

export const host = "Host: plants.example";
export const authorization = `Authorization: Bearer ${tokenPlaceholder}`;
export const json = "Content-Type: application/json";
export const chunked = "Transfer-Encoding: chunked";

/** A head of these lines. */
export function head(...lines: readonly string[]): string {
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** A good list request, with more headers. */
export function get(...headers: readonly string[]): string {
  return head("GET /plants?limit=0 HTTP/1.1", host, authorization, ...headers);
}

/** The head of a create; the headers frame its body. */
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
