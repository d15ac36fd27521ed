/**
 * A flood of creates while the storage is stalled: a bounded number waits, the rest is refused at
 * once, and reads go on. Afterwards the service is as before, with exactly the confirmed plants.
 */
import { Database } from "bun:sqlite";
import { Client } from "pg";
import { queuedMsMax } from "../../src/async/fair-queue.ts";
import type { RunningService } from "../../test/end-to-end/running-service.ts";
import { writeRequest } from "../kept-connection.ts";
import { listPlants } from "../plant-client.ts";
import { residentMb } from "../process-growth.ts";

/** Many more than fit into a commit. */
const clients = 3_500;
const durationMs = 2_500;
/** The memory that a client may take, with its connection. */
const clientBytesMax = 64 * 1024;
/** By then, the service has noticed the stall. */
const noticedMs = queuedMsMax + 100;
/** Well below the number of clients: only the last ones have waited less than half a second. */
const waitingMax = 3_072;
const body = '{"name":"Fern"}';
/** A response counts if it comes by then. */
const deadlineMs = 1_000;
/** The kernel's queue of connections that nobody has accepted yet is short. */
const arrivalsAtOnce = 50;
const arrivalsApartMs = 30;

/** Returns what went wrong. `stall` is one of the functions below. */
export async function flood(service: RunningService, stall: () => Promise<Release>) {
  const faults: string[] = [];
  const { port, token, pid } = service;
  const beforeMb = residentMb(pid);
  const release = await stall();
  const first = service.call("POST /plants", { body });
  await Bun.sleep(noticedMs);
  const requests = [writeRequest("POST /plants", { token, body })];
  const crowd = sendCrowd({ port, requests, clients, durationMs, pauseMs: durationMs });
  let reads = 0;
  for (const startedAtMs = performance.now(); performance.now() - startedAtMs < durationMs; ) {
    const { status } = await service.call("GET /plants?limit=1");
    if (status === 200) reads++;
    else if (status !== 503) faults.push(`a read was answered with ${status}`);
    await Bun.sleep(20);
  }
  const grownBytes = (residentMb(pid) - beforeMb) * 2 ** 20;
  await release();

  const { 201: created = 0, 503: refused = 0, ...others } = (await crowd).statuses;
  if (created > waitingMax) faults.push(`${created} creates waited, and not ${waitingMax}`);
  if (refused === 0) faults.push(`all ${created} creates waited`);
  if (reads === 0) faults.push("no read was answered");
  if (Object.keys(others).length > 0) faults.push(`other responses: ${JSON.stringify(others)}`);
  if (grownBytes > clients * clientBytesMax) faults.push(`it grew by ${grownBytes} bytes`);
  const last = await service.call("POST /plants", { body });
  if (!last.ok) faults.push(`after it a create was answered with ${last.status}`);
  const confirmed = created + Number((await first).ok) + Number(last.ok);
  const { length: stored } = await listPlants(service, token);
  if (stored !== confirmed) faults.push(`${stored} plants are stored of ${confirmed} confirmed`);
  return faults;
}

/** A stall holds up every write until this is called; reads go on. */
export type Release = () => Promise<void>;

/** Like a command that writes for long beside the service, or a disk that hangs. */
export async function stallSqlite(file: string): Promise<Release> {
  const database = new Database(file, { create: false, readwrite: true });
  database.run("BEGIN IMMEDIATE");
  return async () => database.close();
}

/** Like a migration or a careless session. */
export async function stallPostgres(url: string): Promise<Release> {
  const client = new Client(url);
  await client.connect();
  await client.query("BEGIN; LOCK TABLE plants, gardens IN SHARE MODE");
  return () => client.end();
}

/** Each client sends its next request when it has a response. Status 0 is none. */
export async function sendCrowd(order: {
  readonly port: number;
  /** Sent in turn. */
  readonly requests: readonly string[];
  readonly clients: number;
  readonly durationMs: number;
  /** How long a refused client waits. */
  readonly pauseMs: number;
}) {
  const { port, requests, clients, durationMs, pauseMs } = order;
  const statuses: Record<number, number> = {};
  let good = 0;
  const endsAtMs = performance.now() + durationMs;
  async function runClient(): Promise<void> {
    let line: Line | undefined;
    for (let turn = 0; performance.now() < endsAtMs; turn++) {
      const dueAtMs = performance.now() + deadlineMs;
      let status = 0;
      try {
        if (!line || line.isOver) line = new Line(port);
        status = await line.ask(requests[turn % requests.length] as string);
      } catch {
        line = undefined;
      }
      statuses[status] = (statuses[status] ?? 0) + 1;
      if ((status === 200 || status === 201) && performance.now() <= dueAtMs) good++;
      if (status === 503) await Bun.sleep(Math.min(pauseMs, endsAtMs - performance.now()));
    }
    line?.close();
  }
  const running: Promise<void>[] = [];
  while (running.length < clients) {
    running.push(runClient());
    if (running.length % arrivalsAtOnce === 0) await Bun.sleep(arrivalsApartMs);
  }
  await Promise.all(running);
  return { good, statuses };
}

/** A connection that takes little time itself, so that the service is the limit. */
class Line {
  isOver = false;
  #received = "";
  #response = Promise.withResolvers<number>();
  readonly #opened: ReturnType<typeof Bun.connect>;

  constructor(port: number) {
    const end = () => {
      this.isOver = true;
      this.#response.reject(new Error("The connection was closed."));
    };
    const data = (_: unknown, bytes: Buffer) => {
      this.#received += bytes.toString("latin1");
      if (isWhole(this.#received)) this.#response.resolve(Number(this.#received.slice(9, 12)));
    };
    const socket = { data, close: end, error: end };
    this.#opened = Bun.connect({ hostname: "127.0.0.1", port, socket });
  }

  /** Returns the status, once the response is whole. */
  async ask(text: string): Promise<number> {
    this.#received = "";
    this.#response = Promise.withResolvers();
    const socket = await this.#opened;
    socket.write(text);
    return this.#response.promise;
  }

  async close(): Promise<void> {
    // A close that nobody waits for is no failure.
    this.#response.promise.catch(() => {});
    (await this.#opened).end();
  }
}

function isWhole(response: string): boolean {
  const headEnd = response.indexOf("\r\n\r\n");
  const length = /^content-length: (\d+)/im.exec(response)?.[1];
  if (length === undefined) return response.endsWith("\r\n0\r\n\r\n");
  return headEnd > 0 && response.length >= headEnd + 4 + Number(length);
}
