/** Many listeners over raw sockets, with as little work as possible for the one who listens. */
import type { Socket } from "bun";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { startService, waitFor } from "../../test/end-to-end/running-service.ts";
import { type Engine, makePlace } from "../audited-store.ts";
import { KeptConnection, writeRequest } from "../kept-connection.ts";
import { processorMs, residentMb } from "../process-use.ts";

/** How the service runs. */
export interface Setup {
  readonly engine: Engine;
  readonly threads: number;
  readonly instances: number;
}

/** Fewer than a token may have. */
const streamsPerToken = 32;
/** So many connections are opened at once. */
const openedAtOnce = 250;
/** The longest piece of a chunk that announces an event. */
const tailCharactersMax = 40;
const arrivalMsMax = 5_000;
const retryMs = 1_000;
const headers = { Accept: "text/event-stream" };

interface State {
  isOpen: boolean;
  tail: string;
  /** The number of the last event that came. */
  last: string;
  arrivedAtMs: number;
}

class Audience {
  readonly #sockets: Socket<State>[] = [];
  #isClosing = false;
  /** How many streams the service ended. */
  closed = 0;

  async open(port: number, token: string): Promise<void> {
    const request = writeRequest("GET /events", { token, headers });
    const data: State = { isOpen: false, tail: "", last: "", arrivedAtMs: 0 };
    const handlers = {
      data: (socket: Socket<State>, bytes: Buffer) => {
        const state = socket.data;
        const text = state.tail + bytes.toString("latin1");
        state.isOpen ||= text.startsWith("HTTP/1.1 200");
        // The service may be too busy to open so many at once.
        if (text.startsWith("HTTP/1.1 503")) setTimeout(() => socket.write(request), retryMs);
        if (!state.isOpen) return;
        const [, last] = /\bid: (\d+)\n(?!.*\bid: \d+\n)/s.exec(text) ?? [];
        if (last !== undefined) Object.assign(state, { last, arrivedAtMs: performance.now() });
        state.tail = text.slice(-tailCharactersMax);
      },
      close: () => {
        if (!this.#isClosing) this.closed++;
      },
      error() {},
    };
    const socket = await Bun.connect<State>({
      hostname: "127.0.0.1",
      port,
      socket: handlers,
      data,
    });
    this.#sockets.push(socket);
    socket.write(request);
    await waitFor(() => data.isOpen || undefined);
  }

  /** How long after that time each listener got the event; those who didn't count as very long. */
  async delaysOf(seq: string, sinceMs: number): Promise<number[]> {
    const states = this.#sockets.map(({ data }) => data);
    const deadlineMs = sinceMs + arrivalMsMax;
    const isMissing = () => states.some(({ last }) => last !== seq);
    while (isMissing() && performance.now() < deadlineMs) await Bun.sleep(5);
    return states.map(({ last, arrivedAtMs }) =>
      last === seq ? Math.max(0, arrivedAtMs - sinceMs) : arrivalMsMax,
    );
  }

  close(): void {
    this.#isClosing = true;
    for (const socket of this.#sockets) socket.terminate();
  }
}

/** Starts a service with this many listeners, of one garden or of many. */
async function gather({ engine, threads, instances }: Setup, listeners: number, isShared: boolean) {
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await makePlace(engine));
  const { database } = place;
  const args = ["--threads", String(threads)];
  const services = await Promise.all(
    Array.from({ length: instances }, async () =>
      stack.use(await startService({ args, database })),
    ),
  );
  const storage = await openStorage(database, { isServing: false });
  const tokens: string[] = [];
  while (tokens.length * streamsPerToken < listeners) {
    const user = `user-${tokens.length}`;
    const garden = isShared ? "shared" : user;
    tokens.push((await issueToken(storage, { user, garden }, Date.now())).token);
  }
  await storage.close();
  const portOf = (number: number) => services[number % services.length]?.port as number;
  const before = services.map(({ pid }) => residentMb(pid));
  const audience = new Audience();
  stack.defer(() => audience.close());
  for (let from = 0; from < listeners; from += openedAtOnce) {
    const length = Math.min(openedAtOnce, listeners - from);
    const opening = Array.from({ length }, (_, at) =>
      audience.open(portOf(from + at), tokens[(from + at) % tokens.length] as string),
    );
    await Promise.all(opening);
  }
  const kept = stack.move();
  return {
    audience,
    services,
    tokens,
    portOf,
    before,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Sorted: how long after the response to a create each of the listeners got its event. */
export async function measureDelays(
  setup: Setup,
  listeners: number,
  creates: number,
): Promise<number[]> {
  await using gathered = await gather(setup, listeners, true);
  const { audience, tokens, portOf } = gathered;
  const delays: number[] = [];
  const token = tokens[0] as string;
  const request = writeRequest("POST /plants", { token, body: '{"name":"Fern"}' });
  const connections = await Promise.all(
    Array.from({ length: setup.instances }, (_, at) => KeptConnection.open({ port: portOf(at) })),
  );
  for (let seq = 1; seq <= creates; seq++) {
    // At any time between two looks.
    await Bun.sleep(Math.random() * 300);
    await connections[seq % connections.length]?.ask(request);
    delays.push(...(await audience.delaysOf(String(seq), performance.now())));
  }
  for (const connection of connections) connection.close();
  return delays.sort((one, other) => one - other);
}

/** What idle listeners cost the processes of the service, all together. */
export async function measureIdle(setup: Setup, listeners: number, durationMs: number) {
  await using gathered = await gather(setup, listeners, false);
  const { audience, services, before } = gathered;
  const pids = services.map(({ pid }) => pid);
  const sumOf = (measure: (pid: number) => number) =>
    pids.reduce((sum, pid) => sum + measure(pid), 0);
  await Bun.sleep(durationMs / 4);
  const [spentMs, startedAtMs] = [sumOf(processorMs), performance.now()];
  await Bun.sleep(durationMs);
  const processors = (sumOf(processorMs) - spentMs) / (performance.now() - startedAtMs);
  const grownMb = sumOf(residentMb) - before.reduce((a, b) => a + b, 0);
  return { processors, grownMb, closed: audience.closed };
}
