/**
 * Slow clients on raw sockets: `bun clients.ts PORT KIND COUNT`, with tokens in `TOKENS`. A process
 * of its own, so that its memory and CPU time don't count as the service's. Prints a line of JSON
 * twice a second until it is killed.
 */
import { connect, type Socket } from "node:net";

/** Readers take a list at about 1 KB/s; bodies send all but the last bytes of 64 KiB and stop. */
export type SlowKind = "readers" | "bodies";

export interface SlowReport {
  readonly open: number;
  /** Readers that get their list, or bodies that were refused. */
  readonly answered: number;
}

const readBytes = 1_024;
const readEveryMs = 1_000;
const bodyBytes = 64 * 1_024;
const sentBytes = bodyBytes - 16;
const body = Buffer.alloc(sentBytes, " ");

const [port, kind, count] = process.argv.slice(2) as [string, SlowKind, string];
const tokens = (process.env.TOKENS ?? "").split(",");
const sockets = new Set<Socket>();
const answered = new Set<Socket>();

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
      return kind !== "readers";
    },
  };
  const socket = connect({ host: "127.0.0.1", port: Number(port), onread }, () => {
    sockets.add(socket);
    const line = kind === "readers" ? "GET" : "POST";
    const framing = `Content-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n`;
    socket.write(
      `${line} /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n` +
        `${kind === "readers" ? "" : framing}\r\n`,
    );
    if (kind === "bodies") socket.write(body);
  });
  socket.on("error", () => socket.destroy());
  socket.on("close", () => sockets.delete(socket));
}

for (let each = 0; each < Number(count); each++) {
  open(tokens[each % tokens.length] as string);
  // The kernel's queue of connections that nobody has accepted yet is short.
  if (each % 50 === 49) await Bun.sleep(10);
}
if (kind === "readers") {
  setInterval(() => {
    for (const socket of sockets) socket.resume();
  }, readEveryMs);
}
setInterval(() => {
  const report: SlowReport = { open: sockets.size, answered: answered.size };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}, 500);
