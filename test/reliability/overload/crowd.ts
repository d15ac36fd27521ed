/**
 * Many clients at once: either each connection sends its next request when it has a response (a
 * closed loop), or requests arrive at a fixed rate (an open loop).
 */
import { writeSync } from "node:fs";
import type { RawResponse } from "../../../src/check/wire.ts";
import { headerOf, KeptConnection } from "../kept-connection.ts";

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

/** What became of a request. `refusedBare`: without `Retry-After`. */
type Fate = "good" | "late" | "refused" | "refusedBare" | "others" | "timeouts" | "lost";

export interface CrowdReport extends Readonly<Record<Fate, number>> {
  readonly sent: number;
  /** Arrivals for which no connection was left. */
  readonly unsent: number;
  /** By the number of the request; 0 without a response. */
  readonly statuses: readonly number[];
  readonly goodMs: { readonly p50: number; readonly p99: number };
  readonly seconds: number;
}

/** As long as the numbers that replace it. */
export const numberMark = "########";

export function numbered(request: number): string {
  return String(request).padStart(numberMark.length, "0");
}

const tickMs = 2;
/** A client that could not connect waits before it tries again. */
const reconnectMs = 100;

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
  readonly #idle: KeptConnection[] = [];
  readonly #statuses: number[] = [];
  readonly #goodMs: number[] = [];
  readonly #tally: Record<Fate, number> = {
    ...{ good: 0, late: 0, refused: 0, refusedBare: 0, others: 0, timeouts: 0, lost: 0 },
  };
  #connections = 0;
  #unsent = 0;

  constructor(order: CrowdOrder) {
    this.#order = order;
  }

  async run(onSent: () => void): Promise<CrowdReport> {
    const { arrivalsPerSecond, connectionsMax, durationMs } = this.#order;
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + durationMs;
    const clients: Promise<unknown>[] = [];
    if (arrivalsPerSecond === undefined) {
      for (let count = 0; count < connectionsMax; count++) clients.push(this.#loop(endsAtMs));
    }
    for (let nowMs = startedAtMs; nowMs < endsAtMs; nowMs = performance.now()) {
      const due = ((nowMs - startedAtMs) / 1_000) * (arrivalsPerSecond ?? 0);
      while (clients.length + this.#unsent < due) {
        const mayGo = this.#idle.length > 0 || this.#connections < connectionsMax;
        if (mayGo) clients.push(this.#ask(nowMs));
        else this.#unsent++;
      }
      await Bun.sleep(tickMs);
    }
    const seconds = (performance.now() - startedAtMs) / 1_000;
    onSent();
    await Promise.all(clients);
    return {
      ...this.#tally,
      sent: this.#statuses.length,
      unsent: this.#unsent,
      statuses: this.#statuses,
      goodMs: spreadOf(this.#goodMs),
      seconds,
    };
  }

  /** One client of a closed loop. */
  async #loop(endsAtMs: number): Promise<void> {
    const { pauseMs = 0 } = this.#order;
    while (performance.now() < endsAtMs) {
      const fate = await this.#ask(performance.now());
      const waitMs = { lost: reconnectMs, refused: pauseMs, refusedBare: pauseMs }[fate as "lost"];
      if (waitMs) await Bun.sleep(waitMs);
    }
  }

  /** Over an idle connection, or a new one. */
  async #ask(sinceMs: number): Promise<Fate> {
    const { requests, timeoutMs, port } = this.#order;
    let connection = this.#takeIdle();
    if (!connection) this.#connections++;
    let fate: Fate = "lost";
    let isKept = false;
    let isLate = false;
    let timer: Timer | undefined;
    try {
      connection ??= await KeptConnection.open({ port, isSecure: false });
      const giveUp = () => {
        isLate = true;
        connection?.close();
      };
      timer = setTimeout(giveUp, Math.max(0, sinceMs + timeoutMs - performance.now()));
      const number = this.#statuses.push(0) - 1;
      const request = requests[number % requests.length] as string;
      const [answer] = connection.send(request.replace(numberMark, numbered(number)));
      const response = (await answer) as RawResponse;
      fate = this.#record(number, response, performance.now() - sinceMs);
      isKept = headerOf(response, "connection") !== "close" && !connection.isOver;
    } catch {
      if (isLate) fate = "timeouts";
    }
    clearTimeout(timer);
    this.#tally[fate]++;
    if (isKept) this.#idle.push(connection as KeptConnection);
    else {
      connection?.close();
      this.#connections--;
    }
    return fate;
  }

  #takeIdle(): KeptConnection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (!connection?.isOver) return connection;
      this.#connections--;
    }
  }

  #record(number: number, response: RawResponse, tookMs: number): Fate {
    const { status } = response;
    this.#statuses[number] = status;
    if (status < 300 && tookMs > this.#order.deadlineMs) return "late";
    if (status < 300) this.#goodMs.push(tookMs);
    if (status < 300) return "good";
    if (status !== 503 && status !== 429) return "others";
    return headerOf(response, "retry-after") === undefined ? "refusedBare" : "refused";
  }
}

function spreadOf(durationsMs: readonly number[]): CrowdReport["goodMs"] {
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
