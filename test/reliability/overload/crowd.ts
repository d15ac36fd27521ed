/** Many clients at once: each sends its next request when it has a response. */
import { writeSync } from "node:fs";
import { writeRequest } from "../kept-connection.ts";

export interface CrowdOrder {
  readonly port: number;
  /** Sent in turn. `numberMark` in them stands for the request's number. */
  readonly requests: readonly string[];
  readonly clients: number;
  readonly durationMs: number;
  /** How long a refused client waits. */
  readonly pauseMs: number;
}

export interface CrowdReport {
  /** 2xx within the deadline, and after it. */
  good: number;
  late: number;
  /** 503 and 429 with `Retry-After`. */
  refused: number;
  /** Any other response. */
  others: number;
  /** Connections that failed, or were closed before a response. */
  lost: number;
  /** By the number of the request; 0 without a response. */
  readonly statuses: number[];
}

const deadlineMs = 1_000;
/** The kernel's queue of connections that nobody has accepted yet is short. */
const arrivalsAtOnce = 50;
const arrivalsApartMs = 30;
/** As long as the numbers that replace it. */
const numberMark = "########";

export function numbered(request: number): string {
  return String(request).padStart(numberMark.length, "0");
}

/** A create of a plant that is named by the number of its request. */
export function renderCreate(token: string): string {
  return writeRequest("POST /plants", { token, body: `{"name":"plant ${numberMark}"}` });
}

/**
 * Runs a crowd in its own process, so that it measures the service and not this process. `onSent`
 * is called when everything was sent.
 */
export async function sendCrowd(order: CrowdOrder, onSent = () => {}): Promise<CrowdReport> {
  const child = Bun.spawn([process.execPath, import.meta.path], { stdin: "pipe", stdout: "pipe" });
  child.stdin.write(JSON.stringify(order));
  child.stdin.end();
  let text = "";
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    if (text === "") onSent();
    text += piece;
  }
  return JSON.parse(text);
}

/** A connection that takes little time itself, so that the service is the limit. */
class Line {
  isOver = false;
  #received = "";
  #response = Promise.withResolvers<string>();
  readonly #opened: ReturnType<typeof Bun.connect>;

  constructor(port: number) {
    const end = () => {
      this.isOver = true;
      this.#response.reject(new Error("The connection was closed."));
    };
    const data = (_: unknown, bytes: Buffer) => {
      this.#received += bytes.toString("latin1");
      if (isWhole(this.#received)) this.#response.resolve(this.#received);
    };
    const socket = { data, close: end, error: end };
    this.#opened = Bun.connect({ hostname: "127.0.0.1", port, socket });
  }

  /** Returns the whole response. */
  async ask(text: string): Promise<string> {
    this.#received = "";
    this.#response = Promise.withResolvers();
    const socket = await this.#opened;
    socket.write(text);
    return this.#response.promise;
  }
}

function isWhole(response: string): boolean {
  const headEnd = response.indexOf("\r\n\r\n");
  const length = /^content-length: (\d+)/im.exec(response)?.[1];
  if (length === undefined) return response.endsWith("\r\n0\r\n\r\n");
  return headEnd > 0 && response.length >= headEnd + 4 + Number(length);
}

async function runClient(order: CrowdOrder, report: CrowdReport, endsAtMs: number): Promise<void> {
  const { port, requests, pauseMs } = order;
  let line: Line | undefined;
  while (performance.now() < endsAtMs) {
    const number = report.statuses.push(0) - 1;
    const text = requests[number % requests.length] as string;
    const startedAtMs = performance.now();
    try {
      if (!line || line.isOver) line = new Line(port);
      const response = await line.ask(text.replace(numberMark, numbered(number)));
      const status = Number(response.slice(9, 12));
      report.statuses[number] = status;
      const isRefused = status === 503 || status === 429;
      if (status < 300) report[performance.now() - startedAtMs <= deadlineMs ? "good" : "late"]++;
      else report[isRefused && /^retry-after: \d/im.test(response) ? "refused" : "others"]++;
      if (isRefused) await Bun.sleep(Math.min(pauseMs, endsAtMs - performance.now()));
    } catch {
      line = undefined;
      report.lost++;
      await Bun.sleep(100);
    }
  }
}

/** The process of a crowd: its order comes on standard input, its report goes to the output. */
if (import.meta.main) {
  const order: CrowdOrder = JSON.parse(await Bun.stdin.text());
  const report: CrowdReport = { good: 0, late: 0, refused: 0, others: 0, lost: 0, statuses: [] };
  const endsAtMs = performance.now() + order.durationMs;
  setTimeout(() => writeSync(1, "\n"), order.durationMs);
  const clients: Promise<void>[] = [];
  while (clients.length < order.clients) {
    clients.push(runClient(order, report, endsAtMs));
    if (clients.length % arrivalsAtOnce === 0) await Bun.sleep(arrivalsApartMs);
  }
  await Promise.all(clients);
  await Bun.write(Bun.stdout, JSON.stringify(report));
  process.exit(0);
}
