/** The crowds that try to stop the service or hold up others: a few lines each. */

export interface Crowd {
  /** How many connections there are at once; 600 by default. */
  readonly connections?: number;
  /** What a connection sends. `turn` counts all requests of the crowd. */
  readonly send: (token: string, turn: number) => string;
  /**
   * After a response, a connection sends the next request (the default), waits until the service
   * closes it, or leaves and comes back.
   */
  readonly next?: "again" | "wait" | "leave";
  /** The responses have a length, but no body. */
  readonly hasNoBody?: boolean;
  /** Slow ones take a part now and then. */
  readonly reads?: "never" | "slowly";
  /** All connections leave and come back this often. */
  readonly waveMs?: number;
  /** Sent on each connection every second. */
  readonly drip?: string;
  /** How many users the crowd has, all in the same garden; one by default. */
  readonly users?: number;
  /** How many plants are in the garden, and what they're called. */
  readonly plants?: number;
  readonly plantName?: string;
  /** Meanwhile, another user creates plants with long names in that garden. */
  readonly isWritten?: boolean;
  readonly durationMs?: number;
  /** The crowd has JWTs of an issuer that the service trusts, all with a wrong signature. */
  readonly hasForgedJwts?: boolean;
  /** What `/healthz` may take in the median if other than usual, and other calls in proportion. */
  readonly medianMsMax?: number;
  /** By how much a process may grow, and how long a connection may stay open. */
  readonly grownMbMax?: number;
  readonly openMsMax?: number;
}

const json = "Content-Type: application/json";

function request(line: string, token: string, headers: readonly string[] = [], body?: string) {
  const lines = [`${line} HTTP/1.1`, "Host: a", ...headers];
  if (token !== "") lines.push(`Authorization: Bearer ${token}`);
  if (body !== undefined) lines.push(json, `Content-Length: ${Buffer.byteLength(body)}`);
  return `${lines.join("\r\n")}\r\n\r\n${body ?? ""}`;
}

/** Stands for the path of the API reference's library. */
export const libraryMark = "/LIBRARY";

const plants = 20_000;
/** An idle connection is closed after 30 seconds, even one whose request was refused. */
const stay = { connections: 5_000, next: "wait", durationMs: 41_000, openMsMax: 36_000 } as const;
const unfinished = (token: string) =>
  request("POST /plants", token, [], " ".repeat(65_536)).slice(0, -16);
const bulkOf = (count: number, plant: () => string) => `[${Array.from({ length: count }, plant)}]`;
export const longPlant = `{"name":"${"🌱".repeat(200)}"}`;
const randomId = () => Math.floor(Math.random() * 2 ** 52);
const randomPlant = () => `{"name":"${"🌱".repeat(150)}","id":${randomId()}}`;
const randomKey = () => `Idempotency-Key: ${randomId()}-${randomId()}`;
/** All but the first are refused, so the garden doesn't grow. */
const takenIds = bulkOf(1_000, () => '{"name":"Fern","id":1}');
const unknownFields = bulkOf(
  10_000,
  () => `{${Array.from({ length: 8 }, (_, at) => `"${at}":1`)}}`,
);
const deletedIds = `{"ids":[${Array.from({ length: 10_000 }, (_, at) => at * 2)}]}`;
const oneByteChunks = `${request("POST /plants", "", [json, "Transfer-Encoding: chunked"])}${"1\r\n \r\n".repeat(100_000)}0\r\n\r\n`;
const fiveKilobytes = request("POST /plants", "", [], " ".repeat(5_000));
const oneMebibyte = request("POST /plants/bulk", "", [], " ".repeat(1_048_576));
const listen = (token: string, ...headers: readonly string[]) =>
  request("GET /events", token, ["Accept: text/event-stream", ...headers]);

export const crowds: Readonly<Record<string, Crowd>> = {
  "unfinished bodies of 64 KiB": {
    ...{ connections: 8_000, users: 4, send: unfinished, next: "wait" },
    // They are all refused after 15 seconds.
    ...{ durationMs: 20_000, grownMbMax: 100 },
  },
  "unfinished bodies of 64 KiB, no token": {
    ...{ connections: 8_000, send: () => unfinished(""), next: "wait" },
    ...{ waveMs: 3_000, grownMbMax: 100 },
  },
  "5,000 unread copies of the library, no token": {
    ...{ connections: 5_000, send: () => request(`GET ${libraryMark}`, ""), reads: "never" },
    ...{ medianMsMax: 250, grownMbMax: 150 },
  },
  "bulks with ids, keys and long names": {
    connections: 240,
    send: (token) => request("POST /plants/bulk", token, [randomKey()], bulkOf(256, randomPlant)),
  },
  "bulks of unknown fields": {
    connections: 100,
    send: (token) => request("POST /plants/bulk", token, [], unknownFields),
  },
  "bulk deletes of 10,000": {
    ...{ connections: 100, plants },
    send: (token) => request("POST /plants/bulk-delete", token, [], deletedIds),
  },
  "unread bulk results": {
    ...{ users: 4, reads: "never", grownMbMax: 100 },
    send: (token) => request("POST /plants/bulk", token, [], takenIds),
  },
  "HEADs of 1,000 plants": {
    ...{ plants, hasNoBody: true },
    send: (token, turn) => request(`HEAD /plants?limit=1000&after=${turn % 18_000}`, token),
  },
  "lists of 20,000": { plants, send: (token) => request("GET /plants", token) },
  "slow readers": {
    // A list of 7.4 MB: more than the kernel buffers for a connection.
    ...{ connections: 400, users: 4, plants: 6_000, plantName: "🌱".repeat(200) },
    ...{ send: (token) => request("GET /plants", token), reads: "slowly", grownMbMax: 100 },
  },
  "unknown tokens": {
    send: (_, turn) => request("GET /plants", `plant_${String(turn).padStart(49, "0")}`),
  },
  "JWTs with a wrong signature": {
    hasForgedJwts: true,
    send: (token, turn) => request("GET /plants", `${token}${String(turn).padStart(12, "0")}`),
  },
  "bodies of one-byte chunks, no token": {
    ...{ connections: 100, send: () => oneByteChunks, medianMsMax: 250 },
  },
  "kept connections with bodies of 5 KB, no token": {
    ...{ connections: 8_000, send: () => fiveKilobytes, medianMsMax: 250 },
  },
  "bodies of 1 MiB, no token": {
    ...{ connections: 2_000, send: () => oneMebibyte, medianMsMax: 250, grownMbMax: 150 },
  },
  "creates with ids and keys": {
    send: (token) => request("POST /plants", token, [randomKey()], randomPlant()),
  },
  "connections that come and go": { send: () => request("GET /plants", ""), next: "leave" },
  "pipelined gets": {
    ...{ connections: 200, plants, next: "leave" },
    send: (token) => request("GET /plants/7", token).repeat(40),
  },
  searches: { plants, send: (token, turn) => request(`GET /plants?q=none${turn}`, token) },
  // Each another one, so that none is cached.
  "tag counts": {
    plants,
    send: (token, turn) => request(`GET /tags?limit=${1_000 + turn}`, token),
  },
  "/readyz": { send: () => request("GET /readyz", "") },
  "/metrics": { send: () => request("GET /metrics", "") },
  "listeners that never read": {
    ...{ connections: 2_560, users: 40, isWritten: true, send: (token) => listen(token) },
    ...{ reads: "never", durationMs: 12_000, grownMbMax: 100 },
  },
  "listeners that start over": {
    ...{ users: 10, plants, waveMs: 1_500 },
    send: (token) => listen(token, "Last-Event-ID: 0"),
  },
  "unfinished heads": { ...stay, send: () => "GET /plants HTTP/1.1\r\n", drip: "X: y\r\n" },
  "idle connections": { ...stay, send: () => "" },
};

/** Ten times as many of these as the service can serve; the garden has 3,000 plants. */
export const overloads: Readonly<Record<string, Crowd>> = {
  creates: { send: (token) => request("POST /plants", token, [], '{"name":"Fern"}') },
  // So many that caching them doesn't help.
  "lists of 1,000": {
    send: (token, turn) => request(`GET /plants?limit=1000&after=${turn % 997}`, token),
  },
  "creates and lists of 20": {
    send: (token, turn) =>
      turn % 2 === 0
        ? request("POST /plants", token, [], '{"name":"Fern"}')
        : request("GET /plants?limit=20", token),
  },
};
