/** The crowds that try to stop the service or hold up others: a few lines each. */
import { writeRequest } from "../../testing/kept-connection.ts";

export interface Crowd {
  /** How many connections there are at once; 600 by default. */
  readonly connections?: number;
  /** What a connection sends. `turn` counts all requests of the crowd. */
  readonly send: (token: string, turn: number) => string;
  /** In place of tokens, `send` gets a JWT to be completed. */
  readonly isForging?: boolean;
  /** Sent again and again after a request, until the service closes the connection. */
  readonly rest?: string;
  /** After a response, a connection waits until the service closes it, instead of sending again. */
  readonly isWaiting?: boolean;
  /** It never reads its responses. */
  readonly isUnread?: boolean;
  /** How many users the crowd has, all in the same garden; one by default. */
  readonly users?: number;
  /** How many plants are in the garden, and what they're called. */
  readonly plants?: number;
  readonly plantName?: string;
  /** Meanwhile, another user creates plants with long names in that garden. */
  readonly isWritten?: boolean;
  readonly durationMs?: number;
  /** The quiet user may wait longer. */
  readonly isHeavy?: boolean;
  /** By how much a process may grow. */
  readonly grownMbMax?: number;
}

export const longPlant = `{"name":"${"🌱".repeat(200)}"}`;
const plants = 20_000;
/** A process that grows by it, from 50 MB, still fits into a container of 256 MiB. */
const containerMbMax = 200;
const unfinished = (token: string) =>
  writeRequest("POST /plants", { token, body: " ".repeat(65_536) }).slice(0, -16);
const randomId = () => Math.floor(Math.random() * 2 ** 52);
const randomPlant = () => `{"name":"${"🌱".repeat(150)}","id":${randomId()}}`;
const token = "";
const chunked = { "Content-Type": "application/json", "Transfer-Encoding": "chunked" };
const chunkedHead = writeRequest("POST /plants", { token, headers: chunked });
const oneByteChunks = `${chunkedHead}${"1\r\n \r\n".repeat(100_000)}0\r\n\r\n`;
const longChunk = `10000\r\n${" ".repeat(65_536)}\r\n`;
const fiveKilobytes = writeRequest("POST /plants", { token, body: " ".repeat(5_000) });
const oneMebibyte = writeRequest("POST /plants/bulk", { token, body: " ".repeat(1_048_576) });
const manySpaces = { "Content-Type": `a${" ".repeat(15_000)}b` };
/** Members that are slow to parse, almost as long as a body may be. */
const nestedArrays = `"tag":${"[".repeat(130_000)}${"]".repeat(130_000)}`;
const repeatedKeys = Array(16_548).fill('"tag":"shade"').join(",");

/** With these members in `set`, or beside it. */
function changeMany(token: string, turn: number, members: string): string {
  const all = turn % 2 === 0 ? `"set":{${members}}` : `"set":{"tag":""},${members}`;
  return writeRequest("POST /plants/bulk-update", { token, body: `{"ids":[1],${all}}` });
}

/** Each holds up something else, if the service lets it. */
export const crowds: Readonly<Record<string, Crowd>> = {
  "unfinished bodies of 64 KiB": {
    ...{ connections: 8_000, users: 4, send: unfinished, isWaiting: true },
    // They are all refused after 15 seconds.
    ...{ durationMs: 20_000, grownMbMax: containerMbMax },
  },
  "bodies of one-byte chunks, no token": {
    ...{ connections: 100, send: () => oneByteChunks, isHeavy: true },
  },
  "endless bodies of long chunks, no token": {
    ...{ connections: 100, send: () => chunkedHead, rest: longChunk, grownMbMax: 100 },
  },
  "kept connections with bodies of 5 KB, no token": {
    ...{ connections: 8_000, send: () => fiveKilobytes, isHeavy: true },
  },
  "bodies of 1 MiB, no token": {
    ...{ connections: 2_000, send: () => oneMebibyte, isHeavy: true, grownMbMax: 150 },
  },
  "unknown tokens": {
    send: (_, turn) =>
      writeRequest("GET /plants", { token: `plant_${String(turn).padStart(49, "0")}` }),
  },
  "JWTs with a wrong signature": {
    isForging: true,
    send: (jwt, turn) =>
      writeRequest("GET /plants", { token: `${jwt}${String(turn).padStart(12, "0")}` }),
  },
  "Content-Types of 15,000 spaces": {
    connections: 10,
    send: (token) => writeRequest("POST /plants", { token, headers: manySpaces }),
  },
  "bulk updates with nested arrays": {
    connections: 8,
    send: (token, turn) => changeMany(token, turn, nestedArrays),
  },
  "bulk updates with repeated keys": {
    connections: 8,
    send: (token, turn) => changeMany(token, turn, repeatedKeys),
  },
  "bulks with ids, keys and long names": {
    connections: 240,
    send(token) {
      const body = `[${Array.from({ length: 256 }, randomPlant)}]`;
      const headers = { "Idempotency-Key": String(randomId()) };
      return writeRequest("POST /plants/bulk", { token, headers, body });
    },
  },
  "HEADs of 1,000 plants": {
    plants,
    send: (token, turn) =>
      writeRequest(`HEAD /plants?limit=1000&after=${turn % 18_000}`, { token }),
  },
  "unread lists": {
    // A list of 7.4 MB: more than the kernel buffers for a connection.
    ...{ connections: 400, users: 4, plants: 6_000, plantName: "🌱".repeat(195) },
    ...{ send: (token) => writeRequest("GET /plants", { token }), isUnread: true, grownMbMax: 100 },
  },
  searches: { plants, send: (token, turn) => writeRequest(`GET /plants?q=none${turn}`, { token }) },
  "listeners that never read": {
    ...{ connections: 2_560, users: 40, isWritten: true, isUnread: true },
    send: (token) =>
      writeRequest("GET /events", { token, headers: { Accept: "text/event-stream" } }),
    ...{ durationMs: 12_000, grownMbMax: containerMbMax },
  },
};

/** Ten times as many of these as the service can serve; the garden has 3,000 plants. */
export const overloads: Readonly<Record<string, Crowd>> = {
  creates: { send: (token) => writeRequest("POST /plants", { token, body: '{"name":"Fern"}' }) },
  // So many that caching them doesn't help.
  "lists of 1,000": {
    send: (token, turn) => writeRequest(`GET /plants?limit=1000&after=${turn % 997}`, { token }),
  },
  "creates and lists of 20": {
    send: (token, turn) =>
      turn % 2 === 0
        ? writeRequest("POST /plants", { token, body: '{"name":"Fern"}' })
        : writeRequest("GET /plants?limit=20", { token }),
  },
};
