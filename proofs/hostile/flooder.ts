/**
 * Runs a crowd in a process of its own, with as little work as possible: raw sockets, and only the
 * status and the length are parsed. When its standard input ends, it prints what it has seen.
 */
import type { Socket } from "bun";
import { type Crowd, crowds, libraryMark } from "./crowds.ts";

export interface FloodOrder {
  readonly crowd: string;
  readonly connections: number;
  readonly ports: readonly number[];
  /** How many of 127.0.0.1, 127.0.0.2 … the crowd connects to. */
  readonly addresses: number;
  readonly tokens: readonly string[];
  readonly library: string;
}

export interface FloodReport {
  /** How many responses had each status. */
  readonly statuses: Record<string, number>;
  /** How long a connection was open, at most. */
  readonly openMs: number;
}

interface Member {
  readonly number: number;
  socket: Socket<State> | undefined;
}

/** The state of a connection. */
interface State {
  readonly member: Member;
  readonly openedAtMs: number;
  /** How many bytes of a response are missing; `undefined` between responses. */
  missing: number | undefined;
  /** The rest of a request that the kernel didn't take at once. */
  unsent: Buffer | undefined;
}

const returnMs = 5;
/** As `Retry-After` says. Only crowds that don't read obey it: they are there to stay. */
const retryMs = 1_000;
/** How often slow readers take what has arrived: each once in ten seconds. */
const slowStepMs = 100;
const slowSteps = 100;
const dripMs = 1_000;

const order = JSON.parse(process.argv[2] ?? "") as FloodOrder;
const crowd = crowds.find(({ name }) => name === order.crowd) as Crowd;
const { next = "again", reads, waveMs, drip } = crowd;
const { tokens, ports, addresses, library } = order;
const report = { statuses: {} as Record<string, number>, openMs: 0 };
const members = Array.from({ length: order.connections }, (_, number): Member => {
  return { number, socket: undefined };
});
let turn = 0;

const handlers = {
  data(socket: Socket<State>, bytes: Buffer) {
    const state = socket.data;
    if (bytes.length === 0) return;
    if (state.missing === undefined) {
      const head = bytes.toString("latin1", 0, 1_024);
      const status = head.slice(9, 12);
      report.statuses[status] = (report.statuses[status] ?? 0) + 1;
      if (reads && status === "503") return leave(socket, retryMs);
      const length = /^content-length: (\d+)/im.exec(head)?.[1] ?? Number.POSITIVE_INFINITY;
      const hasBody = status !== "204" && !crowd.hasNoBody;
      state.missing = head.indexOf("\r\n\r\n") + 4 + (hasBody ? Number(length) : 0);
    }
    state.missing -= bytes.length;
    if (reads) return void socket.pause();
    const isChunked = state.missing === Number.POSITIVE_INFINITY;
    if (isChunked ? !bytes.subarray(-5).equals(lastChunk) : state.missing > 0) return;
    state.missing = undefined;
    if (next === "again") sendNext(socket);
    else if (next === "leave") leave(socket, returnMs);
  },
  drain(socket: Socket<State>) {
    if (socket.data.unsent) send(socket, socket.data.unsent);
  },
  close(socket: Socket<State>) {
    const { member } = socket.data;
    if (member.socket !== socket) return;
    member.socket = undefined;
    noteStay(socket);
    if (next === "wait" || waveMs !== undefined) return;
    if (crowd.comesBackAtOnce) come(member);
    else setTimeout(() => come(member), returnMs);
  },
  error() {},
};
const lastChunk = Buffer.from("0\r\n\r\n");

function sendNext(socket: Socket<State>): void {
  const token = tokens[socket.data.member.number % tokens.length] ?? "";
  send(socket, Buffer.from(crowd.send(token, turn++).replace(libraryMark, library)));
}

function send(socket: Socket<State>, bytes: Buffer): void {
  const sent = Math.max(socket.write(bytes), 0);
  socket.data.unsent = sent < bytes.length ? bytes.subarray(sent) : undefined;
}

async function come(member: Member): Promise<void> {
  const port = ports[member.number % ports.length] as number;
  const hostname = `127.0.0.${1 + (Math.floor(member.number / ports.length) % addresses)}`;
  const openedAtMs = performance.now();
  const data: State = { member, openedAtMs, missing: undefined, unsent: undefined };
  try {
    const options = { hostname, port, socket: handlers, data };
    const socket = await Bun.connect<State>(options);
    member.socket = socket;
    sendNext(socket);
  } catch {
    if (next !== "wait" && waveMs === undefined) setTimeout(() => come(member), retryMs);
  }
}

function noteStay({ data: { openedAtMs } }: Socket<State>): void {
  report.openMs = Math.max(report.openMs, Math.round(performance.now() - openedAtMs));
}

function leave(socket: Socket<State>, forMs: number): void {
  const { member } = socket.data;
  member.socket = undefined;
  noteStay(socket);
  socket.terminate();
  setTimeout(() => come(member), forMs);
}

/** All members come, or come back, at once. */
async function sendWave(): Promise<void> {
  for (const member of members) {
    const { socket } = member;
    member.socket = undefined;
    socket?.terminate();
  }
  await Promise.all(members.map(come));
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
  }, dripMs);
}
sendWave();
for await (const _ of Bun.stdin.stream());
for (const { socket } of members) if (socket) noteStay(socket);
process.stdout.write(`${JSON.stringify(report satisfies FloodReport)}\n`);
process.exit(0);
