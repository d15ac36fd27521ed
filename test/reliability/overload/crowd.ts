/**
 * Many clients at once over plain sockets: either each connection sends its next request when it
 * has a response (a closed loop), or requests arrive at a fixed rate (an open loop).
 */
import { writeSync } from "node:fs";
import type { Socket } from "bun";

export interface CrowdOrder {
  readonly port: number;
  /** Bytes to send, in turn. `numberMark` in them stands for the request's number. */
  readonly requests: readonly string[];
  readonly connectionsMax: number;
  /** Absent: a closed loop. */
  readonly arrivalsPerSecond?: number;
  readonly durationMs: number;
  /** A 2xx counts as good until the deadline; at the timeout, the client disconnects. */
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  /** How long a refused client of a closed loop waits. */
  readonly pauseMs?: number;
}

export interface CrowdReport {
  readonly sent: number;
  /** 2xx within the deadline, and after it. */
  readonly good: number;
  readonly late: number;
  /** 503 and 429 with `Retry-After`, and without. */
  readonly refused: number;
  readonly refusedBare: number;
  /** Any other response. */
  readonly others: number;
  readonly timeouts: number;
  /** Connections that failed, or were closed before a response. */
  readonly lost: number;
  /** Arrivals for which no connection was left. */
  readonly unsent: number;
  /** By the number of the request; 0 without a response. */
  readonly statuses: readonly number[];
  readonly goodMs: Spread;
  readonly seconds: number;
}

export interface Spread {
  readonly p50: number;
  readonly p99: number;
}

/** As long as the numbers that replace it. */
export const numberMark = "########";

export function numbered(request: number): string {
  return String(request).padStart(numberMark.length, "0");
}

const tickMs = 2;
/** A client that could not connect waits before it tries again. */
const reconnectMs = 100;

interface Connection {
  socket: Socket<Connection> | undefined;
  /** When the current request was due; absent while idle. */
  sinceMs: number | undefined;
  request: number;
  received: string;
}

/**
 * Runs a crowd in its own process, so that it measures the service and not this process. `onSent`
 * is called when everything was sent.
 */
export async function sendCrowd(order: CrowdOrder, onSent = () => {}): Promise<CrowdReport> {
  const child = Bun.spawn([process.execPath, import.meta.path], { stdin: "pipe", stdout: "pipe" });
  child.stdin.write(JSON.stringify(order));
  child.stdin.end();
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of child.stdout) {
    if (text === "") onSent();
    text += decoder.decode(bytes);
  }
  return JSON.parse(text);
}

class Crowd {
  readonly #order: CrowdOrder;
  readonly #idle: Connection[] = [];
  /** In the order of their requests. */
  readonly #busy = new Set<Connection>();
  readonly #statuses: number[] = [];
  readonly #tally = {
    good: 0,
    late: 0,
    refused: 0,
    refusedBare: 0,
    others: 0,
    timeouts: 0,
    lost: 0,
  };
  readonly #goodMs: number[] = [];
  #connections = 0;
  #unsent = 0;
  #isOver = false;

  constructor(order: CrowdOrder) {
    this.#order = order;
  }

  async run(onSent: () => void): Promise<CrowdReport> {
    const { arrivalsPerSecond = 0, connectionsMax, durationMs } = this.#order;
    const startedAtMs = performance.now();
    if (arrivalsPerSecond === 0) {
      for (let count = 0; count < connectionsMax; count++) this.#start(undefined, startedAtMs);
    }
    let arrived = 0;
    for (let nowMs = startedAtMs; nowMs - startedAtMs < durationMs; nowMs = performance.now()) {
      this.#giveUp(nowMs);
      const due = ((nowMs - startedAtMs) / 1_000) * arrivalsPerSecond;
      for (; arrived < due; arrived++) this.#arrive(nowMs);
      await Bun.sleep(tickMs);
    }
    const seconds = (performance.now() - startedAtMs) / 1_000;
    this.#isOver = true;
    onSent();
    while (this.#busy.size > 0) {
      this.#giveUp(performance.now());
      await Bun.sleep(tickMs);
    }
    return {
      ...this.#tally,
      sent: this.#statuses.length,
      unsent: this.#unsent,
      statuses: this.#statuses,
      goodMs: spreadOf(this.#goodMs),
      seconds,
    };
  }

  #arrive(nowMs: number): void {
    let connection = this.#idle.pop();
    while (connection && !connection.socket) connection = this.#idle.pop();
    const mayConnect = this.#connections < this.#order.connectionsMax;
    if (connection || mayConnect) this.#start(connection, nowMs);
    else this.#unsent++;
  }

  /** Over this connection if it is open, else over a new one. */
  #start(connection: Connection | undefined, sinceMs: number): void {
    if (connection?.socket) {
      connection.sinceMs = sinceMs;
      this.#busy.add(connection);
      this.#send(connection, connection.socket);
      return;
    }
    const data: Connection = { socket: undefined, sinceMs, request: 0, received: "" };
    this.#connections++;
    this.#busy.add(data);
    const { port } = this.#order;
    Bun.connect({ hostname: "127.0.0.1", port, data, socket: this.#handlers }).catch(() =>
      this.#lose(data),
    );
  }

  #send(connection: Connection, socket: Socket<Connection>): void {
    const { requests } = this.#order;
    connection.received = "";
    connection.request = this.#statuses.push(0) - 1;
    const request = requests[connection.request % requests.length] as string;
    socket.write(request.replace(numberMark, numbered(connection.request)));
  }

  readonly #handlers = {
    open: (socket: Socket<Connection>) => {
      const connection = socket.data;
      if (connection.sinceMs === undefined) return socket.terminate();
      connection.socket = socket;
      this.#send(connection, socket);
    },
    data: (socket: Socket<Connection>, bytes: Buffer) => {
      const connection = socket.data;
      connection.received += bytes.toString("latin1");
      const headEnd = connection.received.indexOf("\r\n\r\n");
      if (headEnd < 0 || connection.sinceMs === undefined) return;
      const head = connection.received.slice(0, headEnd);
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
      const isWhole = /\r\ntransfer-encoding: chunked/i.test(head)
        ? connection.received.endsWith("\r\n0\r\n\r\n")
        : connection.received.length >= headEnd + 4 + length;
      if (!isWhole) return;
      this.#record(connection, head, performance.now() - connection.sinceMs);
    },
    close: (socket: Socket<Connection>) => this.#lose(socket.data),
    error: (socket: Socket<Connection>) => this.#lose(socket.data),
  };

  #record(connection: Connection, head: string, tookMs: number): void {
    const status = Number(head.slice(9, 12));
    const isRefusal = status === 503 || status === 429;
    const isGood = status < 300 && tookMs <= this.#order.deadlineMs;
    this.#statuses[connection.request] = status;
    if (isGood) this.#goodMs.push(tookMs);
    if (isGood) this.#tally.good++;
    else if (status < 300) this.#tally.late++;
    else if (!isRefusal) this.#tally.others++;
    else if (/\r\nretry-after: \d/i.test(head)) this.#tally.refused++;
    else this.#tally.refusedBare++;
    const { pauseMs = 0 } = this.#order;
    this.#rest(connection);
    if (/\r\nconnection: close/i.test(head)) this.#leave(connection);
    this.#continue(connection, isRefusal ? pauseMs : 0);
  }

  #giveUp(nowMs: number): void {
    for (const connection of this.#busy) {
      if (nowMs - (connection.sinceMs ?? nowMs) < this.#order.timeoutMs) return;
      this.#tally.timeouts++;
      this.#rest(connection);
      this.#leave(connection);
      this.#continue(connection, 0);
    }
  }

  #lose(connection: Connection): void {
    const isUnderWay = connection.sinceMs !== undefined;
    this.#rest(connection);
    if (connection.socket || isUnderWay) this.#leave(connection);
    if (!isUnderWay) return;
    this.#tally.lost++;
    this.#continue(connection, reconnectMs);
  }

  #rest(connection: Connection): void {
    connection.sinceMs = undefined;
    this.#busy.delete(connection);
  }

  #leave(connection: Connection): void {
    const { socket } = connection;
    connection.socket = undefined;
    this.#connections--;
    socket?.terminate();
  }

  #continue(connection: Connection, afterMs: number): void {
    if (this.#isOver) return;
    if (this.#order.arrivalsPerSecond !== undefined) this.#idle.push(connection);
    else if (afterMs === 0) this.#start(connection, performance.now());
    else setTimeout(() => this.#isOver || this.#start(connection, performance.now()), afterMs);
  }
}

function spreadOf(durationsMs: readonly number[]): Spread {
  const sorted = durationsMs.toSorted((left, right) => left - right);
  const at = (share: number) => Math.round(sorted[Math.floor(sorted.length * share)] ?? 0);
  return { p50: at(0.5), p99: at(0.99) };
}

/** The process of a crowd: its order comes on standard input, its report goes to the output. */
if (import.meta.main) {
  const crowd = new Crowd(JSON.parse(await Bun.stdin.text()));
  const report = await crowd.run(() => writeSync(1, "\n"));
  await Bun.write(Bun.stdout, JSON.stringify(report));
  process.exit(0);
}
