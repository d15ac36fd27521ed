/**
 * `npm run prove listeners [count] [seed]`: a consumer that is cut off and resumes, a forwarder
 * that is killed, how soon an event reaches a thousand listeners, and what ten thousand idle ones
 * cost, on each engine.
 */
import type { Socket } from "bun";
import { type Engine, makePlace } from "../../testing/audited-store.ts";
import { makeDice, spread } from "../../testing/dice.ts";
import { EventStreamReader, type SeenEvent } from "../../testing/event-reader.ts";
import { makeSteadyCaller, writeRequest } from "../../testing/kept-connection.ts";
import {
  callAnew,
  makeToken,
  type RunningService,
  startService,
  waitFor,
} from "../../testing/running-service.ts";
import { auditGarden, readLog } from "../audit.ts";
import { Deployment, type Layout, type RestartingService } from "../deployment.ts";
import { Ledger } from "../ledger.ts";
import { processorMs, residentMb } from "../process-use.ts";
import { joinTrials, prove, type Trial } from "../proof.ts";
import { Workload } from "../workload.ts";
import { forwardUnderKills } from "./forwarder.ts";

const [delayMsMax, idleMbMax, idleProcessorsMax] = [500, 250, 0.05];
const creates = 200;
/** Several times as long as the pause between comments. */
const idleMs = 60_000;
/** Fewer than a token may have. */
const streamsPerToken = 32;
/** So many connections are opened at once; a whole number of these. */
const openedAtOnce = 250;
const [arrivalMsMax, retryMs] = [5_000, 1_000];

const clients = 4;
/** Half of the connections end while they catch up, the others often wait for events. */
const [shortMs, longMs] = [20, 600];
const killEveryMs = 1_000;

/** A consumer on each engine. */
export async function followBoth(disconnects: number, seed: number): Promise<Trial> {
  const sqlite = await followEvents({ engine: "sqlite", threads: [2] }, disconnects, seed);
  const postgres = await followEvents({ engine: "postgres", threads: [1, 1] }, disconnects, seed);
  return joinTrials([sqlite, postgres]);
}

/**
 * A consumer follows a garden's events, is disconnected at random, and resumes at any instance,
 * while clients write and instances are killed. It must see every event once, and in order.
 */
async function followEvents(layout: Layout, disconnects: number, seed: number): Promise<Trial> {
  const deployment = await Deployment.start(layout);
  const [{ token } = { token: "" }] = await deployment.takeGarden();
  const ledger = new Ledger();
  const dice = makeDice(spread(seed));
  const pick = () => deployment.instances[dice(deployment.instances.length)] as RestartingService;
  const caller = makeSteadyCaller({ pickPort: () => pick().port });
  const load = new Workload([{ token, call: caller.call }], ledger, { clients, seed });
  const seen: SeenEvent[] = [];
  let [disconnected, kills, isOver] = [0, 0, false];

  /** One connection, until it's cut off. */
  async function listen(forMs: number): Promise<void> {
    const { process } = pick();
    if (!process) return Bun.sleep(shortMs);
    const resuming = { accept: "text/event-stream", "last-event-id": String(seen.at(-1)?.id ?? 0) };
    const cut = new AbortController();
    const timer = setTimeout(() => cut.abort(), forMs);
    try {
      const init = { token, headers: resuming, signal: cut.signal };
      const response = await process.call("GET /events", init);
      if (response.status !== 200) ledger.fault(`a stream got ${response.status}`);
      disconnected++;
      const reader = new EventStreamReader(response);
      for (let event = await reader.next(); event; event = await reader.next()) seen.push(event);
    } catch {
      // It was cut off, or its instance was killed.
    } finally {
      clearTimeout(timer);
    }
  }

  async function killInstances(): Promise<void> {
    for (; !isOver; kills++) {
      await deployment.kill(dice(deployment.instances.length));
      await Bun.sleep(dice(2 * killEveryMs));
    }
  }

  const killing = killInstances();
  while (disconnected < disconnects) await listen(dice(2) === 0 ? dice(shortMs) : dice(longMs));
  isOver = true;
  await Promise.all([load.stop(), killing]);
  const log = await readLog(caller, token);
  await waitFor(async () => {
    await listen(longMs);
    return (seen.at(-1)?.id ?? 0) >= log.length || undefined;
  });
  const faults = await auditGarden(caller, token, ledger);
  faults.push(...(await deployment.stop()));
  const shown = seen.map(({ id, type, data }) => `${id} ${type} ${data.user} ${data.plant.tag}`);
  const logged = log.map(({ seq, type, user, plant }) => `${seq} ${type} ${user} ${plant.tag}`);
  const at = shown.findIndex((event, index) => event !== logged[index]);
  if (at >= 0) faults.push(`after ${logged[at - 1]} the consumer saw ${shown[at]}`);
  return { faults, figures: { events: log.length, disconnects: disconnected, kills } };
}

/** A listener over a raw socket, with as little work as possible. */
interface Listener {
  isOpen: boolean;
  isClosed: boolean;
  /** The end of what came, the number of the last event in it, and when that came. */
  tail: string;
  last: string;
  arrivedAtMs: number;
}

async function listen(port: number, token: string, stack: AsyncDisposableStack): Promise<Listener> {
  const headers = { Accept: "text/event-stream" };
  const request = writeRequest("GET /events", { token, headers });
  const data: Listener = { isOpen: false, isClosed: false, tail: "", last: "", arrivedAtMs: 0 };
  const handlers = {
    data(socket: Socket<undefined>, bytes: Buffer) {
      const text = data.tail + bytes.toString("latin1");
      data.isOpen ||= text.startsWith("HTTP/1.1 200");
      // The service may be too busy to open so many at once.
      if (text.startsWith("HTTP/1.1 503")) setTimeout(() => socket.write(request), retryMs);
      const [, last] = /\bid: (\d+)\n(?!.*\bid: \d+\n)/s.exec(text) ?? [];
      if (last !== undefined) Object.assign(data, { last, arrivedAtMs: performance.now() });
      // The runtime may send the beginning of a status line alone.
      const isInside = data.isOpen || text.length < "HTTP/1.1 200".length;
      data.tail = isInside ? text.slice(-40) : "";
    },
    close() {
      data.isClosed = true;
    },
    error() {},
  };
  const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: handlers });
  stack.defer(() => socket.terminate());
  socket.write(request);
  await waitFor(() => data.isOpen || undefined);
  return data;
}

/** Services with this many listeners, all of one garden or of one for each token. */
async function gather(
  stack: AsyncDisposableStack,
  engine: Engine,
  { instances = 1, count, isShared }: { instances?: number; count: number; isShared: boolean },
) {
  const place = stack.use(await makePlace(engine));
  const args = ["--threads", engine === "sqlite" ? "2" : "1"];
  const start = async () => stack.use(await startService({ args, database: place.database }));
  const services = await Promise.all(Array.from({ length: instances }, start));
  const tokens: string[] = [];
  while (tokens.length * streamsPerToken < count) {
    tokens.push(await makeToken(place, isShared ? "user" : `user-${tokens.length}`));
  }
  const sumOf = (measure: (pid: number) => number) =>
    services.reduce((sum, { pid }) => sum + measure(pid), 0);
  const beforeMb = sumOf(residentMb);
  const listeners: Listener[] = [];
  while (listeners.length < count) {
    const batch = Array.from({ length: openedAtOnce }, (_, at) => {
      const { port = 0 } = services[at % instances] ?? {};
      const token = tokens[(listeners.length + at) % tokens.length] ?? "";
      return listen(port, token, stack);
    });
    listeners.push(...(await Promise.all(batch)));
  }
  return { listeners, services, tokens, sumOf, beforeMb };
}

/** How long after the response to a create each of the listeners gets its event. */
async function tryDelays(engine: Engine, instances: number): Promise<Trial> {
  await using stack = new AsyncDisposableStack();
  const options = { instances, count: 1_000, isShared: true };
  const { listeners, services, tokens } = await gather(stack, engine, options);
  const init = { token: tokens[0] as string, body: '{"name":"Fern"}' };
  const delays: number[] = [];
  for (let seq = 1; seq <= creates; seq++) {
    // At any time between two looks.
    await Bun.sleep((seq * 97) % 300);
    await callAnew(services[seq % instances] as RunningService, "POST /plants", init);
    const sinceMs = performance.now();
    const isMissing = () => listeners.some(({ last }) => last !== String(seq));
    while (isMissing() && performance.now() < sinceMs + arrivalMsMax) await Bun.sleep(5);
    for (const { last, arrivedAtMs } of listeners) {
      delays.push(last === String(seq) ? Math.max(0, arrivedAtMs - sinceMs) : arrivalMsMax);
    }
  }
  delays.sort((one, other) => one - other);
  const at = (share: number) => Math.round(delays[Math.ceil(delays.length * share) - 1] ?? 0);
  const faults = at(0.99) > delayMsMax ? [`p99 is over ${delayMsMax} ms`] : [];
  const row = `${engine}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms`;
  return { faults, figures: {}, row };
}

/** What idle listeners cost the process. */
async function tryIdle(engine: Engine): Promise<Trial> {
  await using stack = new AsyncDisposableStack();
  const options = { count: 10_000, isShared: false };
  const { listeners, sumOf, beforeMb } = await gather(stack, engine, options);
  await Bun.sleep(idleMs / 4);
  const [spentMs, startedAtMs] = [sumOf(processorMs), performance.now()];
  await Bun.sleep(idleMs);
  const processors = (sumOf(processorMs) - spentMs) / (performance.now() - startedAtMs);
  const grownMb = sumOf(residentMb) - beforeMb;
  const closed = listeners.filter(({ isClosed }) => isClosed).length;
  const faults: string[] = [];
  if (grownMb > idleMbMax) faults.push(`over ${idleMbMax} MB`);
  if (processors > idleProcessorsMax) faults.push(`over ${100 * idleProcessorsMax} %`);
  if (closed > 0) faults.push(`${closed} streams ended`);
  const percent = `${(100 * processors).toFixed(1)} % of a processor`;
  return { faults, figures: {}, row: `${engine}: +${grownMb.toFixed(0)} MB, ${percent}` };
}

if (import.meta.main) {
  const kinds: ((seed: number) => Promise<Trial>)[] = [
    (seed) => followBoth(1_000, seed),
    (seed) => forwardUnderKills(10_000, 100, seed),
    () => tryDelays("sqlite", 1),
    () => tryDelays("postgres", 2),
    () => tryIdle("sqlite"),
    () => tryIdle("postgres"),
  ];
  await prove({
    trials: "kinds of listeners",
    count: kinds.length,
    areAllDifferent: true,
    run: (seed) => (kinds[seed % kinds.length] as (typeof kinds)[number])(seed),
  });
}
