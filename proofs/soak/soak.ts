/**
 * The real program under a steady load of everything that clients do, right and wrong, while its
 * memory and open files are sampled. The number of plants stays about the same.
 */
import { join } from "node:path";
import { makeDice } from "../../test/dice.ts";
import {
  type RunningService,
  startService,
  waitFor,
} from "../../test/end-to-end/running-service.ts";
import { auditStore } from "../audited-store.ts";
import { type Sample, sampleProcess } from "../process-growth.ts";

type CallOptions = Parameters<RunningService["call"]>[1];

const clientsCount = 16;
const plantsPerClient = 50;

/**
 * For `npm test`. In so short a run caches still fill and compiled code comes and goes, about a
 * megabyte in all, so the bound is wide: it finds leaks of a kilobyte per request.
 */
export const shortRun = { durationMs: 10_000, warmUpMs: 4_000, heapBytesPerResponseMax: 400 };

export interface SoakSample extends Sample {
  /** Since the last sample. */
  readonly responses: number;
}

/** Nothing is measured before it is warm, and the heap only after collecting garbage. */
export async function soak(options: { durationMs: number; warmUpMs: number; program?: string }) {
  const variables = { BUN_OPTIONS: `--preload ${join(import.meta.dir, "collector.ts")}` };
  await using service = await startService({ program: options.program, variables });
  const load = new Load(service);
  await load.run(options.warmUpMs);
  const heapBefore = await measureHeap(service);
  const responsesBefore = load.responses;
  const samples: SoakSample[] = [];
  let counted = load.responses;
  const sampling = setInterval(() => {
    // Hours of log would fill this process's memory.
    service.output().out = "";
    samples.push({ ...sampleProcess(service.pid), responses: load.responses - counted });
    counted = load.responses;
  }, 1_000);
  await load.run(options.durationMs);
  clearInterval(sampling);
  const responses = load.responses - responsesBefore;
  const heapGrowth = (await measureHeap(service)) - heapBefore;
  const faults = [...load.faults, ...(await auditStore(service.database))];
  return { responses, faults, samples, heapBytesPerResponse: heapGrowth / responses };
}

async function measureHeap(service: RunningService): Promise<number> {
  let size = 0;
  // Twice: what one thread frees may have kept objects of another one alive.
  for (let time = 1; time <= 2; time++) {
    // By then, work after the last response is done, such as closing a connection.
    await Bun.sleep(500);
    const output = service.output();
    output.errors = "";
    service.signal("SIGUSR2");
    size = Number(await waitFor(() => /^heap (\d+)\n/m.exec(output.errors)?.[1]));
  }
  return size;
}

/** Clients that pause for as long as they wait. Each creates and deletes its own plants. */
class Load {
  responses = 0;
  readonly faults: string[] = [];

  constructor(readonly service: RunningService) {}

  async run(durationMs: number): Promise<void> {
    const endsAtMs = performance.now() + durationMs;
    const runClient = async (_: unknown, number: number) => {
      const dice = makeDice(number);
      const own: string[] = [];
      while (performance.now() < endsAtMs) {
        const startedAtMs = performance.now();
        await this.#act(own, dice);
        await Bun.sleep(performance.now() - startedAtMs);
      }
      for (const location of own) await this.#send(`DELETE ${location}`, 204);
    };
    await Promise.all(Array.from({ length: clientsCount }, runClient));
  }

  /** Half of the requests list a page; the rest is everything else that happens in a day. */
  async #act(own: string[], dice: (sides: number) => number): Promise<void> {
    const kind = dice(21);
    const name = crypto.randomUUID();
    const body = JSON.stringify({ name });
    if (kind < 10) await this.#send(`GET /plants?limit=20&after=${dice(1_000)}`, 200);
    else if (kind < 16) {
      const location = own.length >= plantsPerClient || kind < 13 ? own.shift() : undefined;
      const headers: HeadersInit = kind === 13 ? {} : { "idempotency-key": name };
      if (location) await this.#send(`DELETE ${location}`, 204);
      else own.push(await this.#send("POST /plants", 201, { headers, body }));
    } else if (kind === 16) await this.#send("GET /plants?include=id", 200);
    else if (kind === 17) await this.#send("GET /plants?limit=-1", 400);
    else if (kind === 18) await this.#send("GET /plants", 401, { token: name });
    else if (kind === 19 && own[0]) await this.#send(`PUT ${own[0]}`, 200, { body });
    else await this.#send("GET /metrics", 200, { headers: { connection: "close" } });
  }

  /** Returns where a created plant is. */
  async #send(request: string, expected: number, init: CallOptions = {}): Promise<string> {
    const response = await this.service.call(request, init).catch((error: Error) => error);
    this.responses++;
    const status = response instanceof Error ? response.message : response.status;
    if (status !== expected && this.faults.length < 100) this.faults.push(`${request}: ${status}`);
    if (response instanceof Error) return "/plants/0";
    await response.arrayBuffer();
    return response.headers.get("location") ?? "/plants/0";
  }
}
