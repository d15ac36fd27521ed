/** A crowd against the real service, and what a quiet user of another garden sees meanwhile. */
import { join } from "node:path";
import { type RunningService, runProgram, startService } from "../../end-to-end/running-service.ts";
import { type Engine, makePlace } from "../audited-store.ts";
import { KeptConnection, writeRequest } from "../kept-connection.ts";
import { residentMb } from "../process-growth.ts";
import type { Crowd } from "./crowds.ts";
import type { FloodOrder, FloodReport } from "./flooder.ts";

/** How the service runs: so many threads of one process, or so many processes. */
export interface Setup {
  readonly engine: Engine;
  readonly threads: number;
  readonly instances: number;
}

export interface TrialOptions {
  /** Times as many connections. */
  readonly factor?: number;
  readonly durationMs?: number;
  /** Another program than the real one. */
  readonly program?: string | undefined;
}

export const calls = ["healthz", "get", "create"] as const;
export type CallName = (typeof calls)[number];

export interface Times {
  readonly medianMs: number;
  readonly worstMs: number;
}

export interface TrialResult {
  readonly hasLived: boolean;
  readonly times: Readonly<Record<CallName, Times>>;
  /** What the quiet user got, by status; 0 is no response. */
  readonly quiet: Readonly<Record<string, number>>;
  readonly crowd: FloodReport;
  readonly grownMb: number;
}

const usualMs = 6_000;
const callEveryMs = 10;
/** The service's processes, and the flooder's, may open about 20,000 files each. */
const connectionsMax = 19_000;
const bulkLinesMax = 2_000;

export async function tryCrowd(
  crowd: Crowd,
  setup: Setup,
  { factor = 1, durationMs = crowd.durationMs ?? usualMs, program }: TrialOptions = {},
): Promise<TrialResult> {
  await using place = await makePlace(setup.engine);
  const { database } = place;
  const makeToken = async (...args: string[]) =>
    (
      await runProgram(["token", "create", ...args], { PLANTSTORE_DATABASE: database }, program)
    ).out.trim();
  const owner = await makeToken("hostile");
  const quiet = await makeToken("quiet");
  const tokens: string[] = [];
  for (let user = 0; user < (crowd.users ?? 0); user++) {
    tokens.push(await makeToken(`hostile${user}`, "--garden", "hostile"));
  }
  await using stack = new AsyncDisposableStack();
  const services: RunningService[] = [];
  for (let instance = 0; instance < setup.instances; instance++) {
    const args = ["--threads", String(setup.threads)];
    services.push(stack.use(await startService({ args, database, program })));
  }
  const [first] = services as [RunningService];
  await fill(first, owner, crowd);
  // The first request bundles the page, which takes seconds.
  for (const service of services) await findLibrary(service);
  const library = await findLibrary(first);
  const ports = services.map(({ port }) => port);
  // One connection for each thread, or more if the kernel gives them to the same one.
  const lanes = Array.from({ length: 2 }, (_, lane) => ports[lane % ports.length] as number);
  const user = await QuietUser.start(lanes, quiet);
  await Bun.sleep(500);
  user.forget();

  let isAlive = true;
  for (const { exited } of services)
    exited.then(() => {
      isAlive = false;
    });
  const beforeMb = totalMb(services);
  let peakMb = beforeMb;
  const connections = Math.min(crowd.connections * factor, connectionsMax * ports.length);
  const flooder = startFlooder({ crowd: crowd.name, connections, ports, tokens, library }, crowd);
  for (
    const startedAtMs = performance.now();
    isAlive && performance.now() - startedAtMs < durationMs;
  ) {
    await Bun.sleep(100);
    if (isAlive) peakMb = Math.max(peakMb, totalMb(services));
    // The log would fill the memory of this process.
    for (const service of services) service.output().out = "";
  }
  const hasLived = isAlive;
  const seen = await user.stop();
  return { ...seen, hasLived, crowd: await flooder.stop(), grownMb: peakMb - beforeMb };
}

function totalMb(services: readonly RunningService[]): number {
  return Math.max(...services.map(({ pid }) => residentMb(pid)));
}

async function fill(
  service: RunningService,
  token: string,
  { plants = 0, plantName = "Fern" }: Crowd,
) {
  const headers = { "content-type": "application/jsonl" };
  for (let from = 0; from < plants; from += bulkLinesMax) {
    const length = Math.min(bulkLinesMax, plants - from);
    const lines = Array.from({ length }, (_, at) =>
      JSON.stringify({ name: plantName, id: from + at }),
    );
    const { ok, status } = await service.call("POST /plants/bulk", {
      token,
      headers,
      body: lines.join("\n"),
    });
    if (!ok) throw new Error(`filling the garden: ${status}`);
  }
}

async function findLibrary(service: RunningService): Promise<string> {
  const page = await (await service.call("GET /docs")).text();
  const [path] = /assets\/reference-library-[^"]+/.exec(page) ?? [];
  if (path === undefined) throw new Error("The API reference names no library.");
  await (await service.call(`GET /${path}`)).arrayBuffer();
  return `/${path}`;
}

/**
 * A crowd that never rests has less priority than the service: clients on other machines wouldn't
 * take its processors either.
 */
function startFlooder(order: FloodOrder, { next }: Crowd) {
  const priority = next === "wait" ? "0" : "10";
  const file = join(import.meta.dir, "flooder.ts");
  const child = Bun.spawn(["nice", "-n", priority, process.execPath, file, JSON.stringify(order)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  return {
    async stop(): Promise<FloodReport> {
      child.stdin.end();
      return JSON.parse(await new Response(child.stdout).text());
    },
  };
}

/** Calls all the time, each kind of call over connections of its own. */
class QuietUser {
  #times: Record<CallName, number[]> = { healthz: [], get: [], create: [] };
  #statuses: Record<string, number> = {};
  #isOver = false;
  #calling: Promise<void>[] = [];

  static async start(ports: readonly number[], token: string): Promise<QuietUser> {
    const user = new QuietUser();
    const create = writeRequest("POST /plants", { token, body: '{"name":"Fern"}' });
    const put = writeRequest("PUT /plants/1", { token, body: '{"name":"Fern"}' });
    const connection = await KeptConnection.open({ port: ports[0] as number });
    await connection.ask(put);
    connection.close();
    const requests: Record<CallName, string> = {
      healthz: writeRequest("GET /healthz", { token }),
      get: writeRequest("GET /plants/1", { token }),
      create,
    };
    for (const port of ports) {
      for (const name of calls) user.#calling.push(user.#call(port, name, requests[name]));
    }
    return user;
  }

  /** What came before the crowd doesn't count. */
  forget(): void {
    for (const name of calls) this.#times[name] = [];
    this.#statuses = {};
  }

  /** What it has seen until now. A call that still waits counts as if it ended now. */
  async stop() {
    this.#isOver = true;
    await Promise.all(this.#calling);
    const times = Object.fromEntries(calls.map((name) => [name, summarize(this.#times[name])]));
    return { times: times as Record<CallName, Times>, quiet: this.#statuses };
  }

  async #call(port: number, name: CallName, request: string): Promise<void> {
    let connection: KeptConnection | undefined;
    while (!this.#isOver) {
      const startedAtMs = performance.now();
      let status = 0;
      try {
        if (!connection || connection.isOver) connection = await KeptConnection.open({ port });
        ({ status } = await connection.ask(request));
      } catch {
        connection?.close();
        connection = undefined;
      }
      this.#times[name].push(performance.now() - startedAtMs);
      this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
      await Bun.sleep(callEveryMs);
    }
    connection?.close();
  }
}

function summarize(times: readonly number[]): Times {
  const sorted = times.toSorted((a, b) => a - b);
  return { medianMs: sorted[sorted.length >> 1] ?? 0, worstMs: sorted.at(-1) ?? 0 };
}
