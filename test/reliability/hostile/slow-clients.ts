/**
 * Connections that are held open at the least cost: `bun slow-clients.ts PORT COUNT`, with the
 * token in `TOKEN`. It is a process of its own, so that good clients are not slowed down by what it
 * does itself, and says twice a second how it fares, until it is ended.
 */
import { connect, type Socket } from "node:net";

/** What a connection does to stay: nothing, or a little of the headers, the body, or the answer. */
export const slownesses = ["idle", "headers", "body", "reading"] as const;
export type Slowness = (typeof slownesses)[number];

export interface SlowReport {
  readonly open: number;
  /** How many the service has ended, and the longest that one of them was there, or is. */
  readonly ended: Readonly<Record<Slowness, number>>;
  readonly longestMs: Readonly<Record<Slowness, number>>;
}

const dripEveryMs = 2_000;
const reportEveryMs = 500;
const returnAfterMs = 200;
/** Each of these takes megabytes of the kernel's memory, so that few of them do. */
const readersShare = 50;
/** What a slow reader takes at a time. Left to itself, a socket takes half a megabyte. */
const sipBytes = 1_024;

class SlowClients {
  readonly #port: number;
  readonly #token: string;
  readonly #ended = { idle: 0, headers: 0, body: 0, reading: 0 };
  readonly #longestMs = { idle: 0, headers: 0, body: 0, reading: 0 };
  /** Of those that are there, since when. */
  readonly #open = new Map<Socket, { readonly slowness: Slowness; readonly sinceMs: number }>();

  constructor(port: number, token: string) {
    this.#port = port;
    this.#token = token;
  }

  report(): SlowReport {
    for (const { slowness, sinceMs } of this.#open.values()) this.#noteStay(slowness, sinceMs);
    return { open: this.#open.size, ended: this.#ended, longestMs: this.#longestMs };
  }

  /** Whoever is thrown out comes back. */
  hold(slowness: Slowness): void {
    const sinceMs = performance.now();
    let timer: Timer | undefined;
    const onread = { buffer: Buffer.alloc(sipBytes), callback: () => slowness !== "reading" };
    const socket = connect({ host: "127.0.0.1", port: this.#port, onread }, () => {
      this.#open.set(socket, { slowness, sinceMs });
      socket.write(this.#opening(slowness));
      // Each in a rhythm of its own, as clients that do not know of each other.
      timer = setTimeout(() => {
        timer = setInterval(() => drip(socket, slowness), dripEveryMs);
      }, Math.random() * dripEveryMs);
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearInterval(timer);
      if (this.#open.delete(socket)) {
        this.#ended[slowness]++;
        this.#noteStay(slowness, sinceMs);
      }
      setTimeout(() => this.hold(slowness), returnAfterMs * (1 + Math.random()));
    });
  }

  #noteStay(slowness: Slowness, sinceMs: number): void {
    const stayMs = performance.now() - sinceMs;
    this.#longestMs[slowness] = Math.max(this.#longestMs[slowness], stayMs);
  }

  #opening(slowness: Slowness): string {
    const head = `Host: a\r\nAuthorization: Bearer ${this.#token}\r\n`;
    if (slowness === "headers") return "GET /plants HTTP/1.1\r\n";
    if (slowness === "reading") return `GET /plants HTTP/1.1\r\n${head}\r\n`;
    const framing = "Content-Type: application/json\r\nContent-Length: 1000\r\n";
    return slowness === "body" ? `POST /plants HTTP/1.1\r\n${head}${framing}\r\n` : "";
  }
}

function drip(socket: Socket, slowness: Slowness): void {
  if (slowness === "reading") socket.resume();
  else if (slowness !== "idle") socket.write(slowness === "headers" ? "X: y\r\n" : " ");
}

if (import.meta.main) {
  const [port, count] = process.argv.slice(2).map(Number);
  const clients = new SlowClients(Number(port), process.env.TOKEN ?? "");
  for (let each = 0; each < Number(count); each++) {
    clients.hold(each % readersShare === 0 ? "reading" : (slownesses[each % 3] as Slowness));
    // Not all in one moment: the kernel holds only so many that nobody has accepted.
    if (each % 100 === 99) await Bun.sleep(10);
  }
  setInterval(() => {
    process.stdout.write(`${JSON.stringify(clients.report())}\n`);
  }, reportEveryMs);
}
