/** Many clients at once: each sends its next request when it has a response. */
import { writeSync } from "node:fs";
import { headerOf, KeptConnection, writeRequest } from "../kept-connection.ts";

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

async function runClient(order: CrowdOrder, report: CrowdReport, endsAtMs: number): Promise<void> {
  const { port, requests, pauseMs } = order;
  let connection: KeptConnection | undefined;
  while (performance.now() < endsAtMs) {
    const number = report.statuses.push(0) - 1;
    const text = requests[number % requests.length] as string;
    const startedAtMs = performance.now();
    try {
      if (!connection || connection.isOver) {
        connection = await KeptConnection.open({ port, isSecure: false });
      }
      const response = await connection.ask(text.replace(numberMark, numbered(number)));
      const { status } = response;
      report.statuses[number] = status;
      const isRefused = status === 503 || status === 429;
      if (status < 300) report[performance.now() - startedAtMs <= deadlineMs ? "good" : "late"]++;
      else report[isRefused && headerOf(response, "retry-after") ? "refused" : "others"]++;
      if (isRefused) await Bun.sleep(Math.min(pauseMs, endsAtMs - performance.now()));
    } catch {
      report.lost++;
      await Bun.sleep(100);
    }
  }
  connection?.close();
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
