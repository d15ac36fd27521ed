/**
 * The real program under a steady load of everything that clients do, right and wrong, while its
 * memory and open files are sampled. The number of plants stays about the same.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeDice } from "../../dice.ts";
import { type RunningService, startService, waitFor } from "../../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { auditStore } from "../audited-store.ts";
import { type Sample, sampleProcess } from "../process-growth.ts";

const clientsCount = 16;
const plantsPerClient = 50;
const peakMs = 5_000;
const faultsMax = 100;
/** By then, work after the last response is done, such as closing a connection. */
const restMs = 500;

export interface SoakOptions {
  readonly durationMs: number;
  /** Before anything is measured. */
  readonly warmUpMs: number;
  readonly sampleEveryMs: number;
  /** Requests a second; by default half of what it can do. */
  readonly rate?: number | undefined;
  readonly program?: string;
  readonly onSample?: (sample: Sample, responses: number) => void;
}

export interface Soak {
  readonly rate: number;
  readonly responses: number;
  readonly faults: readonly string[];
  readonly samples: readonly Sample[];
  /** By how much the heap grew per response, measured after collecting garbage. */
  readonly heapBytesPerResponse: number;
}

/**
 * For `npm test`. In so short a run caches still fill and compiled code comes and goes, about a
 * megabyte in all, so the bound is wide: it finds leaks of a small object per request.
 */
export const shortRun = {
  durationMs: 10_000,
  warmUpMs: 4_000,
  sampleEveryMs: 500,
  rate: 3_000,
  heapBytesPerResponseMax: 100,
};

export async function soak(options: SoakOptions): Promise<Soak> {
  using folder = makeTemporaryFolder();
  const heapFile = join(folder.path, "heap");
  await using service = await startService({
    program: options.program,
    variables: {
      BUN_OPTIONS: `--preload ${join(import.meta.dir, "collector.ts")}`,
      COLLECTOR_FILE: heapFile,
    },
  });
  const load = new Load(service);
  const rate = options.rate ?? Math.round((await load.run(peakMs, Number.POSITIVE_INFINITY)) / 2);
  await load.run(options.warmUpMs, rate);
  const heapBefore = await measureHeap(service, heapFile);
  const responsesBefore = load.responses;
  const samples: Sample[] = [];
  const sampling = setInterval(() => {
    // The log of hours would fill the memory of this process.
    service.output().out = "";
    const sample = sampleProcess(service.pid);
    samples.push(sample);
    options.onSample?.(sample, load.responses);
  }, options.sampleEveryMs);
  await load.run(options.durationMs, rate);
  clearInterval(sampling);
  const heapGrowth = (await measureHeap(service, heapFile)) - heapBefore;
  const responses = load.responses - responsesBefore;
  const faults = [...load.faults, ...(await auditStore(service.database))];
  return { rate, responses, faults, samples, heapBytesPerResponse: heapGrowth / responses };
}

/** Twice: what one thread frees may have kept objects of another one alive. */
async function measureHeap(service: RunningService, file: string): Promise<number> {
  const collect = async () => {
    await Bun.sleep(restMs);
    rmSync(file, { force: true });
    service.signal("SIGUSR2");
    return waitFor(() => (existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined));
  };
  await collect();
  return collect();
}

/** Clients that together keep a steady rate. Each has plants of its own, which come and go. */
class Load {
  responses = 0;
  readonly faults: string[] = [];
  readonly #service: RunningService;
  #runs = 0;

  constructor(service: RunningService) {
    this.#service = service;
  }

  /** Returns the responses a second. */
  async run(durationMs: number, rate: number): Promise<number> {
    this.#runs++;
    const before = this.responses;
    const startedAtMs = performance.now();
    const paceMs = (1_000 * clientsCount) / rate;
    const clients = Array.from({ length: clientsCount }, (_, number) =>
      this.#client(number, startedAtMs + (number * paceMs) / clientsCount, durationMs, paceMs),
    );
    await Promise.all(clients);
    return ((this.responses - before) * 1_000) / (performance.now() - startedAtMs);
  }

  async #client(
    number: number,
    startAtMs: number,
    durationMs: number,
    paceMs: number,
  ): Promise<void> {
    const dice = makeDice(number);
    const own: string[] = [];
    let dueAtMs = startAtMs;
    for (let count = 0; performance.now() < startAtMs + durationMs; count++) {
      if (dueAtMs > performance.now()) await Bun.sleep(dueAtMs - performance.now());
      dueAtMs += paceMs;
      await this.#act(`${this.#runs}-${number}-${count}`, own, dice);
    }
    for (const location of own) await this.#send(`DELETE ${location}`, 204);
  }

  /** Half of the requests list a page; the rest is everything else that happens in a day. */
  async #act(name: string, own: string[], dice: (sides: number) => number): Promise<void> {
    const kind = dice(21);
    if (kind < 10) await this.#send(`GET /plants?limit=20&after=${dice(1_000)}`, 200);
    else if (kind < 16) {
      const location = own.length >= plantsPerClient || kind < 13 ? own.shift() : undefined;
      if (location) await this.#send(`DELETE ${location}`, 204);
      else own.push(await this.#create(name, dice(2) === 0));
    } else if (kind === 16) await this.#send("GET /plants?fields=id,name,tag", 200);
    else if (kind === 17) await this.#send("GET /plants?limit=-1", 400);
    else if (kind === 18) await this.#send("GET /plants", 401, { token: name });
    else if (kind === 19)
      await this.#send("GET /metrics", 200, { headers: { connection: "close" } });
    else if (own[0]) await this.#send(`PUT ${own[0]}`, 200, { body: JSON.stringify({ name }) });
  }

  async #create(name: string, isKeyed: boolean): Promise<string> {
    const headers: Record<string, string> = isKeyed ? { "idempotency-key": name } : {};
    const body = JSON.stringify({ name });
    const response = await this.#send("POST /plants", 201, { headers, body });
    return response?.headers.get("location") ?? "/plants/0";
  }

  async #send(
    request: string,
    expected: number,
    init: RequestInit & { token?: string } = {},
  ): Promise<Response | undefined> {
    try {
      const response = await this.#service.call(request, init);
      await response.arrayBuffer();
      if (response.status !== expected) this.#fault(`${request}: ${response.status}`);
      return response;
    } catch (error) {
      this.#fault(`${request}: ${error}`);
      return undefined;
    } finally {
      this.responses++;
    }
  }

  #fault(text: string): void {
    if (this.faults.length < faultsMax) this.faults.push(text);
  }
}
