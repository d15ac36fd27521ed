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
  /** How long a connection was open, at most. */
  readonly openMs: number;
  /** How many good responses came within a second, per second. */
  readonly goodPerSecond: number;
}

/** One connection, and the next after it. */
interface Member {
  readonly number: number;
  /** Absent while it isn't connected. */
  socket: Socket<Member> | undefined;
  openedAtMs: number;
  sentAtMs: number;
  status: string;
  /** A head of which a part is still missing: the runtime may send `HTTP/1.1 ` alone. */
  head: Buffer;
  /** How many bytes of a response are missing; `undefined` until its head is there. */
  missing: number | undefined;
  /** The rest of a request that the kernel didn't take at once. */
  unsent: Buffer | undefined;
}

const returnMs = 5;
const retryMs = 1_000;
const goodMs = 1_000;

const order = JSON.parse(process.argv[2] ?? "") as FloodOrder;
const crowd = (crowds[order.crowd] ?? overloads[order.crowd]) as Crowd;
const { isWaiting, isUnread, drip } = crowd;
const { tokens, ports, isPatient } = order;
const hasBodies = !crowd.send("", 0).startsWith("HEAD");
const startedAtMs = performance.now();
const statuses: Record<string, number> = {};
let [openMs, good, turn] = [0, 0, 0];
/** Ends a head, and after it only the last chunk: there is none in JSON. */
const blankLine = Buffer.from("\r\n\r\n");
const noBytes: Buffer = Buffer.alloc(0);

/** A connection that has sent and received nothing. */
const between = { status: "", head: noBytes, missing: undefined, unsent: undefined };

const handlers = {
  open(socket: Socket<Member>) {
    socket.data.socket = socket;
    sendNext(socket);
  },
  data(socket: Socket<Member>, piece: Buffer) {
    const member = socket.data;
    const bytes = member.head.length > 0 ? Buffer.concat([member.head, piece]) : piece;
    if (member.missing === undefined) {
      member.head = bytes.includes(blankLine) ? noBytes : bytes;
      if (member.head.length > 0 || bytes.length === 0) return;
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
    else if (!isWaiting) sendNext(socket);
  },
  drain(socket: Socket<Member>) {
    if (socket.data.unsent) send(socket, socket.data.unsent);
  },
  close(socket: Socket<Member>) {
    const member = socket.data;
    // It was never open.
    if (member.socket !== socket) return;
    noteStay(member);
    member.socket = undefined;
    if (!isWaiting) setTimeout(come, isRefused(member) ? retryMs : returnMs, member);
  },
  error() {},
};

function isRefused({ status }: Member): boolean {
  return status === "503" && (isPatient || isUnread) === true;
}

function sendNext(socket: Socket<Member>): void {
  const member = socket.data;
  if (member.socket !== socket) return;
  member.sentAtMs = performance.now();
  send(socket, Buffer.from(crowd.send(tokens[member.number % tokens.length] ?? "", turn++)));
}

function send(socket: Socket<Member>, bytes: Buffer): void {
  const sent = Math.max(socket.write(bytes), 0);
  socket.data.unsent = sent < bytes.length ? bytes.subarray(sent) : undefined;
}

async function come(member: Member): Promise<void> {
  const port = ports[member.number % ports.length] as number;
  Object.assign(member, { openedAtMs: performance.now(), ...between });
  try {
    await Bun.connect({ hostname: "127.0.0.1", port, socket: handlers, data: member });
  } catch {
    if (!isWaiting) setTimeout(come, retryMs, member);
  }
}

function noteStay({ socket, openedAtMs }: Member): void {
  if (socket) openMs = Math.max(openMs, Math.round(performance.now() - openedAtMs));
}

const members = Array.from({ length: order.connections }, (_, number): Member => {
  return { number, socket: undefined, openedAtMs: 0, sentAtMs: 0, ...between };
});
// Patient ones don't overrun the kernel's queue.
for (const member of members) {
  if (isPatient) setTimeout(come, Math.floor(member.number / 50) * 30, member);
  else come(member);
}
if (drip !== undefined) {
  setInterval(() => {
    for (const { socket } of members) socket?.write(drip);
  }, 1_000);
}
for await (const _ of Bun.stdin.stream());
members.forEach(noteStay);
const goodPerSecond = (good * 1_000) / (performance.now() - startedAtMs);
process.stdout.write(
  `${JSON.stringify({ statuses, openMs, goodPerSecond } satisfies FloodReport)}\n`,
);
process.exit(0);
