/**
 * Runs a crowd in a process of its own, with as little work as possible: raw sockets, and only the
 * status and the length are parsed. When its standard input ends, it prints what it has seen.
 */
import type { Socket } from "bun";
import { type Crowd, crowds, libraryMark, overloads } from "./crowds.ts";

export interface FloodOrder {
  readonly crowd: string;
  readonly connections: number;
  readonly ports: readonly number[];
  readonly tokens: readonly string[];
  readonly library?: string;
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

interface Member {
  readonly number: number;
  socket: Socket<State> | undefined;
}

/** The state of a connection. */
interface State {
  readonly member: Member;
  readonly openedAtMs: number;
  sentAtMs: number;
  status: string;
  /** How many bytes of a response are missing; `undefined` between responses. */
  missing: number | undefined;
  /** The rest of a request that the kernel didn't take at once. */
  unsent: Buffer | undefined;
}

const returnMs = 5;
const retryMs = 1_000;
const goodMs = 1_000;
/** How often slow readers take what has arrived: each once in ten seconds. */
const slowStepMs = 100;
const slowSteps = 100;

const order = JSON.parse(process.argv[2] ?? "") as FloodOrder;
const crowd = (crowds[order.crowd] ?? overloads[order.crowd]) as Crowd;
const { next = "again", reads, waveMs, drip } = crowd;
const { tokens, ports, library = "" } = order;
const startedAtMs = performance.now();
const statuses: Record<string, number> = {};
let [openMs, good, turn] = [0, 0, 0];
const members = Array.from({ length: order.connections }, (_, number): Member => {
  return { number, socket: undefined };
});
const lastChunk = Buffer.from("0\r\n\r\n");

const handlers = {
  data(socket: Socket<State>, bytes: Buffer) {
    const state = socket.data;
    if (bytes.length === 0) return;
    if (state.missing === undefined) {
      const head = bytes.toString("latin1", 0, 1_024);
      state.status = head.slice(9, 12);
      statuses[state.status] = (statuses[state.status] ?? 0) + 1;
      // Crowds that don't read are there to stay.
      if (reads && state.status === "503") return leave(socket, retryMs);
      const length = /^content-length: (\d+)/im.exec(head)?.[1] ?? Number.POSITIVE_INFINITY;
      const hasBody = state.status !== "204" && !crowd.hasNoBody;
      state.missing = head.indexOf("\r\n\r\n") + 4 + (hasBody ? Number(length) : 0);
    }
    state.missing -= bytes.length;
    if (reads) return void socket.pause();
    const isChunked = state.missing === Number.POSITIVE_INFINITY;
    if (isChunked ? !bytes.subarray(-5).equals(lastChunk) : state.missing > 0) return;
    state.missing = undefined;
    if (/^20[01]/.test(state.status) && performance.now() - state.sentAtMs <= goodMs) good++;
    if (next === "leave") leave(socket, returnMs);
    else if (isRefused(state)) setTimeout(() => sendNext(socket), retryMs);
    else if (next === "again") sendNext(socket);
  },
  drain(socket: Socket<State>) {
    if (socket.data.unsent) send(socket, socket.data.unsent);
  },
  close(socket: Socket<State>) {
    const { member } = socket.data;
    if (member.socket !== socket) return;
    member.socket = undefined;
    noteStay(socket);
    const pauseMs = isRefused(socket.data) ? retryMs : returnMs;
    if (next !== "wait" && waveMs === undefined) setTimeout(() => come(member), pauseMs);
  },
  error() {},
};

function isRefused({ status }: State): boolean {
  return order.isPatient === true && status === "503";
}

function sendNext(socket: Socket<State>): void {
  if (socket.data.member.socket !== socket) return;
  const token = tokens[socket.data.member.number % tokens.length] ?? "";
  socket.data.sentAtMs = performance.now();
  send(socket, Buffer.from(crowd.send(token, turn++).replace(libraryMark, library)));
}

function send(socket: Socket<State>, bytes: Buffer): void {
  const sent = Math.max(socket.write(bytes), 0);
  socket.data.unsent = sent < bytes.length ? bytes.subarray(sent) : undefined;
}

async function come(member: Member): Promise<void> {
  const port = ports[member.number % ports.length] as number;
  const openedAtMs = performance.now();
  const state = { sentAtMs: 0, status: "", missing: undefined, unsent: undefined };
  const data: State = { member, openedAtMs, ...state };
  try {
    const options = { hostname: "127.0.0.1", port, socket: handlers, data };
    member.socket = await Bun.connect<State>(options);
    sendNext(member.socket);
  } catch {
    if (next !== "wait" && waveMs === undefined) setTimeout(() => come(member), retryMs);
  }
}

function noteStay({ data: { openedAtMs } }: Socket<State>): void {
  openMs = Math.max(openMs, Math.round(performance.now() - openedAtMs));
}

function leave(socket: Socket<State>, forMs: number): void {
  const { member } = socket.data;
  member.socket = undefined;
  noteStay(socket);
  socket.terminate();
  setTimeout(() => come(member), forMs);
}

/** All members come, or come back, at once. Patient ones don't overrun the kernel's queue. */
async function sendWave(): Promise<void> {
  for (const member of members) {
    const { socket } = member;
    member.socket = undefined;
    socket?.terminate();
  }
  const coming = members.map(async (member) => {
    if (order.isPatient) await Bun.sleep(Math.floor(member.number / 50) * 30);
    await come(member);
  });
  await Promise.all(coming);
  if (waveMs !== undefined) setTimeout(sendWave, waveMs);
}

if (reads === "slowly") {
  let step = 0;
  setInterval(() => {
    step = (step + 1) % slowSteps;
    for (let at = step; at < members.length; at += slowSteps) members[at]?.socket?.resume();
  }, slowStepMs);
}
if (drip !== undefined) {
  setInterval(() => {
    for (const { socket } of members) socket?.write(drip);
  }, 1_000);
}
sendWave();
for await (const _ of Bun.stdin.stream());
for (const { socket } of members) if (socket) noteStay(socket);
const goodPerSecond = (good * 1_000) / (performance.now() - startedAtMs);
process.stdout.write(
  `${JSON.stringify({ statuses, openMs, goodPerSecond } satisfies FloodReport)}\n`,
);
process.exit(0);
