/**
 * Runs a crowd in a process of its own, with as little work as possible: raw sockets, and only the
 * status and the length are parsed. When its standard input ends, it prints what it has seen.
 */
import type { Socket } from "bun";
import { type Crowd, crowds, overloads } from "./crowds.ts";

export interface FloodOrder {
  readonly crowd: string;
  readonly connections: number;
  readonly ports: readonly number[];
  readonly tokens: readonly string[];
  /** After a 503, a connection waits as `Retry-After` says. */
  readonly isPatient?: boolean;
}

export interface FloodReport {
  /** How many responses had each status. */
  readonly statuses: Record<string, number>;
  /** How many good responses came within a second, per second. */
  readonly goodPerSecond: number;
}

/** One connection, and the next after it. */
interface Member {
  readonly number: number;
  sentAtMs: number;
  status: string;
  /** A head of which a part is still missing: the runtime may send `HTTP/1.1 ` alone. */
  head: Buffer;
  /** How many bytes of a response are missing; `undefined` until its head is there. */
  missing: number | undefined;
  /** The rest of a request that the kernel didn't take at once. */
  unsent: Buffer;
  /** Its response came, so the next request follows the rest. */
  isNextDue: boolean;
}

const returnMs = 5;
const retryMs = 1_000;
const goodMs = 1_000;

const { tokens, ports, ...order } = JSON.parse(process.argv[2] ?? "") as FloodOrder;
const crowd = (crowds[order.crowd] ?? overloads[order.crowd]) as Crowd;
const { isWaiting, isUnread } = crowd;
const hasBodies = !crowd.send("", 0).startsWith("HEAD");
const startedAtMs = performance.now();
const statuses: Record<string, number> = {};
let [good, turn] = [0, 0];
/** Ends a head, and after it only the last chunk: there is none in JSON. */
const blankLine = Buffer.from("\r\n\r\n");
const noBytes: Buffer = Buffer.alloc(0);
const rest = Buffer.from(crowd.rest ?? "");

const handlers = {
  open: sendNext,
  data(socket: Socket<Member>, piece: Buffer) {
    const member = socket.data;
    const bytes = member.head.length > 0 ? Buffer.concat([member.head, piece]) : piece;
    if (member.missing === undefined) {
      member.head = bytes.includes(blankLine) ? noBytes : bytes;
      if (member.head.length > 0) return;
      const head = bytes.toString("latin1", 0, 1_024);
      member.status = head.slice(9, 12);
      statuses[member.status] = (statuses[member.status] ?? 0) + 1;
      // Crowds that don't read are there to stay.
      if (isUnread && member.status === "503") return void socket.terminate();
      const length = /^content-length: (\d+)/im.exec(head)?.[1] ?? Number.POSITIVE_INFINITY;
      const hasBody = member.status !== "204" && hasBodies;
      member.missing = bytes.indexOf(blankLine) + 4 + (hasBody ? Number(length) : 0);
    }
    member.missing -= bytes.length;
    if (isUnread) return void socket.pause();
    const isChunked = member.missing === Number.POSITIVE_INFINITY;
    if (isChunked ? !bytes.subarray(-4).equals(blankLine) : member.missing > 0) return;
    member.missing = undefined;
    if (/^20[01]/.test(member.status) && performance.now() - member.sentAtMs <= goodMs) good++;
    if (isRefused(member)) setTimeout(sendNext, retryMs, socket);
    else if (!isWaiting && member.unsent.length === 0) sendNext(socket);
    else member.isNextDue = !isWaiting;
  },
  drain(socket: Socket<Member>) {
    const { data } = socket;
    send(socket, data.unsent);
    if (data.isNextDue && data.unsent.length === 0) sendNext(socket);
  },
  close({ data }: Socket<Member>) {
    const wasOpen = data.sentAtMs > 0;
    const pauseMs = isRefused(data) ? retryMs : returnMs;
    if (wasOpen && !isWaiting) setTimeout(come, pauseMs, data.number);
  },
  error() {},
};

function isRefused({ status }: Member): boolean {
  return status === "503" && (order.isPatient || isUnread) === true;
}

function sendNext(socket: Socket<Member>): void {
  const member = socket.data;
  member.sentAtMs = performance.now();
  member.isNextDue = false;
  send(socket, Buffer.from(crowd.send(tokens[member.number % tokens.length] ?? "", turn++)));
}

function send(socket: Socket<Member>, bytes: Buffer): void {
  const unsent = bytes.subarray(Math.max(socket.write(bytes), 0));
  socket.data.unsent = unsent;
  // Until the kernel takes no more.
  if (unsent.length === 0 && rest.length > 0) send(socket, rest);
}

async function come(number: number): Promise<void> {
  const port = ports[number % ports.length] as number;
  const data = {
    number,
    sentAtMs: 0,
    status: "",
    head: noBytes,
    missing: undefined,
    unsent: noBytes,
    isNextDue: false,
  };
  try {
    await Bun.connect<Member>({ hostname: "127.0.0.1", port, socket: handlers, data });
  } catch {
    if (!isWaiting) setTimeout(come, retryMs, number);
  }
}

for (let number = 0; number < order.connections; number++) {
  // Patient ones don't overrun the kernel's queue.
  setTimeout(come, order.isPatient ? Math.floor(number / 50) * 30 : 0, number);
}
for await (const _ of Bun.stdin.stream());
const goodPerSecond = (good * 1_000) / (performance.now() - startedAtMs);
process.stdout.write(`${JSON.stringify({ statuses, goodPerSecond } satisfies FloodReport)}\n`);
process.exit(0);
