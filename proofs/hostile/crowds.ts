/** The crowds that try to stop the service or hold up others: a few lines each. */

export interface Crowd {
  readonly name: string;
  /** How many connections there are at once. */
  readonly connections: number;
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
  /** Connections that the service closes come back at once instead of after a few milliseconds. */
  readonly comesBackAtOnce?: boolean;
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
  if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  return `${lines.join("\r\n")}\r\n\r\n${body ?? ""}`;
}

/** Stands for the path of the API reference's library. */
export const libraryMark = "/LIBRARY";

/** An idle connection is closed after 30 seconds, even one whose request was refused. */
const stay = { durationMs: 41_000, openMsMax: 36_000 };
const unfinished = (token: string) =>
  request("POST /plants", token, [json, "Content-Length: 9"]).concat("{");
const unfinishedLong = (token: string) =>
  request("POST /plants", token, [json], " ".repeat(65_536)).slice(0, -16);
const repeat = (plant: string, count: number) => `[${Array<string>(count).fill(plant)}]`;
const longName = "🌱".repeat(150);
const randomId = () => Math.floor(Math.random() * 2 ** 52);
const randomBulk = () =>
  `[${Array.from({ length: 256 }, () => `{"name":"${longName}","id":${randomId()}}`)}]`;
const randomKey = () => `Idempotency-Key: ${randomId()}-${randomId()}`;
/** All but the first are refused, so the garden doesn't grow. */
const takenIds = repeat('{"name":"Fern","id":1}', 1_000);
const unknownFields = repeat(`{${Array.from({ length: 8 }, (_, at) => `"${at}":1`)}}`, 10_000);
const deletedIds = `{"ids":[${Array.from({ length: 10_000 }, (_, at) => at * 2)}]}`;
const createBody = '{"name":"Fern"}';
const chunked = (token: string, chunks: string) =>
  `${request("POST /plants", token, [json, "Transfer-Encoding: chunked"])}${chunks}0\r\n\r\n`;
const oneByteChunks = chunked("", "1\r\n \r\n".repeat(100_000));
const fiveKilobytes = request("POST /plants", "", [json], " ".repeat(5_000));
const oneMebibyte = request("POST /plants/bulk", "", [json], " ".repeat(1_048_576));
const listen = (token: string, after?: string) =>
  request("GET /events", token, [
    "Accept: text/event-stream",
    ...(after === undefined ? [] : [`Last-Event-ID: ${after}`]),
  ]);

export const crowds: readonly Crowd[] = [
  {
    name: "unfinished bodies, one write token",
    connections: 4_000,
    send: unfinished,
    next: "wait",
    // They are all refused after 15 seconds.
    durationMs: 20_000,
  },
  {
    name: "unfinished bodies of 64 KiB",
    connections: 8_000,
    users: 4,
    send: unfinishedLong,
    next: "wait",
    durationMs: 20_000,
    grownMbMax: 100,
  },
  {
    name: "unfinished bodies of 64 KiB, no token",
    connections: 8_000,
    send: () => unfinishedLong(""),
    next: "wait",
    waveMs: 3_000,
    grownMbMax: 100,
  },
  {
    name: "5,000 unread copies of the library, no token",
    connections: 5_000,
    send: () => request(`GET ${libraryMark}`, ""),
    reads: "never",
    medianMsMax: 250,
    grownMbMax: 150,
  },
  {
    name: "bulks with ids, keys and long names",
    connections: 240,
    send: (token) => request("POST /plants/bulk", token, [json, randomKey()], randomBulk()),
  },
  {
    name: "HEADs of 1,000 plants",
    connections: 600,
    plants: 20_000,
    hasNoBody: true,
    send: (token, turn) => request(`HEAD /plants?limit=1000&after=${turn % 18_000}`, token),
  },
  {
    name: "lists of 500, each another one",
    connections: 600,
    plants: 20_000,
    send: (token, turn) => request(`GET /plants?limit=500&after=${turn % 19_000}`, token),
  },
  {
    name: "lists of 20,000",
    connections: 600,
    plants: 20_000,
    send: (token) => request("GET /plants", token),
  },
  {
    name: "unread bulk results",
    connections: 600,
    users: 4,
    send: (token) => request("POST /plants/bulk", token, [json], takenIds),
    reads: "never",
    grownMbMax: 100,
  },
  {
    name: "slow readers",
    connections: 400,
    users: 4,
    // A list of 7.4 MB: more than the kernel buffers for a connection.
    plants: 6_000,
    plantName: "🌱".repeat(200),
    send: (token) => request("GET /plants", token),
    reads: "slowly",
    grownMbMax: 100,
  },
  {
    name: "unknown tokens",
    connections: 600,
    send: (_, turn) => request("GET /plants", `plant_${String(turn).padStart(49, "0")}`),
  },
  {
    name: "empty chunked bodies, no token",
    connections: 100,
    send: () => chunked("", ""),
    comesBackAtOnce: true,
    medianMsMax: 100,
  },
  {
    name: "bodies of one-byte chunks, no token",
    connections: 100,
    send: () => oneByteChunks,
    comesBackAtOnce: true,
    medianMsMax: 250,
  },
  {
    name: "kept connections with bodies of 5 KB, no token",
    connections: 8_000,
    send: () => fiveKilobytes,
    medianMsMax: 250,
  },
  {
    name: "bodies of 1 MiB, no token",
    connections: 2_000,
    send: () => oneMebibyte,
    medianMsMax: 250,
    grownMbMax: 150,
  },
  {
    name: "JWTs with a wrong signature",
    connections: 600,
    hasForgedJwts: true,
    send: (token, turn) => request("GET /plants", `${token}${String(turn).padStart(12, "0")}`),
  },
  {
    name: "creates with ids and keys",
    connections: 600,
    send: (token) =>
      request("POST /plants", token, [json, randomKey()], `{"name":"Fern","id":${randomId()}}`),
  },
  {
    name: "PUTs of one plant",
    connections: 600,
    send: (token) => request("PUT /plants/7", token, [json], createBody),
  },
  {
    name: "connections that come and go",
    connections: 600,
    send: () => request("GET /plants", ""),
    next: "leave",
  },
  {
    name: "pipelined gets",
    connections: 200,
    plants: 20_000,
    send: (token) => request("GET /plants/7", token).repeat(40),
    next: "leave",
  },
  {
    name: "searches",
    connections: 600,
    plants: 20_000,
    send: (token, turn) => request(`GET /plants?limit=20&q=none${turn}`, token),
  },
  {
    name: "searches without a limit",
    connections: 600,
    plants: 20_000,
    send: (token, turn) => request(`GET /plants?q=none${turn}`, token),
  },
  {
    name: "tag counts",
    connections: 600,
    plants: 20_000,
    // Each another one, so that none is cached.
    send: (token, turn) => request(`GET /tags?limit=${1_000 + turn}`, token),
  },
  {
    name: "bulk deletes of 10,000",
    connections: 100,
    plants: 20_000,
    send: (token) => request("POST /plants/bulk-delete", token, [json], deletedIds),
  },
  { name: "/readyz", connections: 600, send: () => request("GET /readyz", "") },
  { name: "/metrics", connections: 600, send: () => request("GET /metrics", "") },
  {
    name: "bulks of unknown fields",
    connections: 100,
    send: (token) => request("POST /plants/bulk", token, [json], unknownFields),
  },
  {
    name: "listeners that never read",
    connections: 2_560,
    users: 40,
    isWritten: true,
    send: (token) => listen(token),
    reads: "never",
    durationMs: 12_000,
    grownMbMax: 100,
  },
  {
    name: "listeners that start over",
    connections: 600,
    users: 10,
    plants: 20_000,
    send: (token) => listen(token, "0"),
    waveMs: 1_500,
  },
  {
    name: "unfinished heads",
    connections: 5_000,
    send: () => "GET /plants HTTP/1.1\r\n",
    next: "wait",
    drip: "X: y\r\n",
    ...stay,
  },
  { name: "idle connections", connections: 5_000, send: () => "", next: "wait", ...stay },
];
