/** Slow clients against the real service: the memory that they take, and what others notice. */
import { connect, type Socket } from "node:net";
import { makeToken, type RunningService, waitFor } from "../../end-to-end/running-service.ts";
import { writeRequest } from "../kept-connection.ts";
import { sampleProcess, watchThreads } from "../process-growth.ts";

/**
 * Readers take a list at about 1 KB/s; bodies send all but the last bytes of 64 KiB and stop;
 * headers send a line now and then; idle ones send nothing; bulks don't read their results.
 */
export type SlowKind = "readers" | "bodies" | "bulks" | "headers" | "idle";

const body = " ".repeat(64 * 1_024);
const bulkOf = (count: number, plant: object) =>
  JSON.stringify(Array.from({ length: count }, () => plant));
/** 20 KB, with results of 80: the first one takes the id. No bulk has longer ones for its size. */
const bulk = bulkOf(1_000, { name: "a", id: 1 });
const longPlants = bulkOf(1_000, { name: "🌱".repeat(200) });

/** What a client of each kind sends first. */
const openings: Readonly<Record<SlowKind, (token: string) => string>> = {
  readers: (token) => writeRequest("GET /plants", { token }),
  bodies: (token) => writeRequest("POST /plants", { token, body }).slice(0, -16),
  bulks: (token) => writeRequest("POST /plants/bulk", { token, body: bulk }),
  headers: () => "GET /plants HTTP/1.1\r\n",
  idle: () => "",
};

class SlowClients {
  /** The longest time that a connection was open. */
  longestMs = 0;
  /** When each of those that are open was opened. */
  readonly openedAtMs = new Map<Socket, number>();
  readonly answered = new Set<Socket>();
  readonly #dripping = setInterval(() => this.#drip(), 1_000);

  constructor(
    readonly kind: SlowKind,
    readonly port: number,
  ) {}

  get isReading(): boolean {
    return this.kind !== "readers" && this.kind !== "bulks";
  }

  open(token: string): void {
    const callback = (bytes: number, buffer: Uint8Array) => {
      const isRefused = buffer.subarray(0, bytes).toString().startsWith("HTTP/1.1 503");
      if (this.kind === "readers" && isRefused) {
        // As Retry-After says.
        socket.destroy();
        setTimeout(() => this.open(token), 1_000);
        return false;
      }
      this.answered.add(socket);
      return this.isReading;
    };
    const onread = { buffer: Buffer.alloc(1_024), callback };
    const socket = connect({ host: "127.0.0.1", port: this.port, onread }, () => {
      this.openedAtMs.set(socket, performance.now());
      socket.write(openings[this.kind](token));
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.#noteStay(socket);
      this.openedAtMs.delete(socket);
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#dripping);
    for (const socket of this.openedAtMs.keys()) socket.destroy();
  }

  #drip(): void {
    for (const socket of this.openedAtMs.keys()) {
      this.#noteStay(socket);
      if (this.kind === "readers") socket.resume();
      if (this.kind === "headers") socket.write("X: y\r\n");
    }
  }

  #noteStay(socket: Socket): void {
    const openedAtMs = this.openedAtMs.get(socket) ?? performance.now();
    this.longestMs = Math.max(this.longestMs, performance.now() - openedAtMs);
  }
}

/** Keeps slow clients for a while, and meanwhile uses the service as others do. */
export async function attack(
  service: RunningService,
  kind: SlowKind,
  count: number,
  holdMs: number,
) {
  // A list of 7.4 MB: more than the kernel buffers for a connection.
  for (let times = 0; kind === "readers" && times < 6; times++) {
    await service.call("POST /plants/bulk", { body: longPlants });
  }
  const other = await makeToken(service, "other");
  // One user alone would get a share only.
  const tokens: string[] = [];
  for (const user of "abcd") tokens.push(await makeToken(service, user, "--garden", "gardener"));
  await useService(service, other, 500);
  const beforeMb = sampleProcess(service.pid).residentMb;
  let peakMb = 0;
  const sampling = setInterval(() => {
    peakMb = Math.max(peakMb, sampleProcess(service.pid).residentMb);
  }, 500);
  using clients = new SlowClients(kind, service.port);
  for (let each = 0; each < count; each++) {
    clients.open(tokens[each % tokens.length] as string);
    // The kernel's queue of connections that nobody has accepted yet is short.
    if (each % 50 === 49) await Bun.sleep(10);
  }
  const { openedAtMs, answered, isReading } = clients;
  const hasArrived = () => answered.size + (isReading ? openedAtMs.size : 0) >= count || undefined;
  await waitFor(hasArrived);
  const used = await useService(service, other, holdMs);
  clearInterval(sampling);
  return { ...used, longestMs: clients.longestMs, grownMb: peakMb - beforeMb };
}

/** Returns what failed, and the longest that a thread computed while somebody waited. */
export async function useService(service: RunningService, token: string, durationMs: number) {
  const faults: string[] = [];
  let busyMsMax = 0;
  const call = async (request: string, body?: string) => {
    const readBusyMs = watchThreads(service.pid);
    const { status } = await service.call(request, { token, ...(body && { body }) });
    if (status >= 300) faults.push(`${request} got ${status}`);
    busyMsMax = Math.max(busyMsMax, readBusyMs());
  };
  for (const startedAtMs = performance.now(); performance.now() - startedAtMs < durationMs; ) {
    await call("GET /healthz");
    await call("POST /plants", '{"name":"Fern"}');
    await call("GET /plants?limit=20");
    await Bun.sleep(50);
  }
  return { busyMsMax, faults };
}
