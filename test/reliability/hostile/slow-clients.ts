/**
 * Slow clients on raw sockets, in their own process: `bun slow-clients.ts PORT KIND COUNT`, with
 * tokens in `TOKENS`. Prints a line of JSON twice a second until it is killed.
 */
import { connect, type Socket } from "node:net";

/**
 * Readers take a list at about 1 KB/s; bodies send all but the last bytes of 64 KiB and stop;
 * headers send a line now and then; idle ones send nothing; bulks don't read their results.
 */
export type SlowKind = "readers" | "bodies" | "bulks" | "headers" | "idle";

export interface SlowReport {
  readonly open: number;
  /** Connections on which something was received. */
  readonly answered: number;
  /** The longest time that a connection has been open. */
  readonly longestMs: number;
}

const readBytes = 1_024;
const dripEveryMs = 1_000;
const bodyBytes = 64 * 1_024;
const sentBytes = bodyBytes - 16;
const body = Buffer.alloc(sentBytes, " ");
/** 10 KB, with results of more than a megabyte. */
const bulk = "\n".repeat(10_000);

const [port, kind, count] = process.argv.slice(2) as [string, SlowKind, string];
const tokens = (process.env.TOKENS ?? "").split(",");
const openedAtMs = new Map<Socket, number>();
let longestMs = 0;
const answered = new Set<Socket>();

function noteStay(socket: Socket): void {
  const stayMs = performance.now() - (openedAtMs.get(socket) ?? performance.now());
  longestMs = Math.max(longestMs, stayMs);
}

function open(token: string): void {
  const onread = {
    buffer: Buffer.alloc(readBytes),
    callback: (bytes: number, buffer: Uint8Array) => {
      const isRefused = buffer.subarray(0, bytes).toString().startsWith("HTTP/1.1 503");
      if (kind === "readers" && isRefused) {
        // As Retry-After says.
        socket.destroy();
        setTimeout(() => open(token), 1_000);
        return false;
      }
      answered.add(socket);
      return kind !== "readers" && kind !== "bulks";
    },
  };
  const socket = connect({ host: "127.0.0.1", port: Number(port), onread }, () => {
    openedAtMs.set(socket, performance.now());
    const head = `Host: a\r\nAuthorization: Bearer ${token}\r\n`;
    const framing = `Content-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n`;
    if (kind === "readers") socket.write(`GET /plants HTTP/1.1\r\n${head}\r\n`);
    if (kind === "bodies") socket.write(`POST /plants HTTP/1.1\r\n${head}${framing}\r\n`);
    if (kind === "bodies") socket.write(body);
    if (kind === "bulks") {
      const type = `Content-Type: application/jsonl\r\nContent-Length: ${bulk.length}\r\n`;
      socket.write(`POST /plants/bulk HTTP/1.1\r\n${head}${type}\r\n${bulk}`);
    }
    if (kind === "headers") socket.write("GET /plants HTTP/1.1\r\n");
  });
  socket.on("error", () => socket.destroy());
  socket.on("close", () => {
    noteStay(socket);
    openedAtMs.delete(socket);
  });
}

for (let each = 0; each < Number(count); each++) {
  open(tokens[each % tokens.length] as string);
  // The kernel's queue of connections that nobody has accepted yet is short.
  if (each % 50 === 49) await Bun.sleep(10);
}
setInterval(() => {
  for (const socket of openedAtMs.keys()) {
    if (kind === "readers") socket.resume();
    if (kind === "headers") socket.write("X: y\r\n");
  }
}, dripEveryMs);
setInterval(() => {
  for (const socket of openedAtMs.keys()) noteStay(socket);
  const report: SlowReport = { open: openedAtMs.size, answered: answered.size, longestMs };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}, 500);
