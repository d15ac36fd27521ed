/**
 * The real program at an even load for a long time: everything that callers do, right and wrong,
 * while its memory and open files are looked at. The garden stays as large as it is.
 */
import { makeDice } from "../../dice.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { takeVitalSigns, type VitalSigns } from "../vital-signs.ts";
import type { Held } from "./collector.ts";
import { startSoakedService } from "./soaked-service.ts";

const clientsCount = 16;
const plantsOfClient = 50;
const sampleEveryMs = 10_000;
const peakMs = 5_000;
const warmUpMs = 60_000;

/** Of the heap without its garbage: nearly as much comes and goes with compiled code. */
export const heldGrowthMaxMb = 1;

export interface SoakOptions {
  readonly durationMs: number;
  /** Requests a second; half of what it can do, if not given. */
  readonly rate?: number | undefined;
  /** At this rate, before anything is measured. */
  readonly warmUpMs?: number;
  readonly sampleEveryMs?: number;
  readonly onSample?: (signs: VitalSigns, answers: number) => void;
}

export interface Soak {
  readonly rate: number;
  readonly answers: number;
  /** Answers that no request of these should get. */
  readonly faults: readonly string[];
  readonly samples: readonly VitalSigns[];
  /** What it held once its garbage was collected, before and after these many of the answers. */
  readonly held: { readonly before: Held; readonly after: Held; readonly answers: number };
}

export async function soak(options: SoakOptions): Promise<Soak> {
  using folder = makeTemporaryFolder();
  await using service = await startSoakedService(folder.path);
  const load = new Load(service.url, service.token);
  const rate = options.rate ?? Math.round((await load.run(peakMs, Number.POSITIVE_INFINITY)) / 2);
  await load.run(options.warmUpMs ?? warmUpMs, rate);
  const before = await service.collect();
  const answersBefore = load.answers;
  const samples: VitalSigns[] = [];
  const sampling = setInterval(() => {
    const signs = takeVitalSigns(service.pid);
    samples.push(signs);
    options.onSample?.(signs, load.answers);
  }, options.sampleEveryMs ?? sampleEveryMs);
  await load.run(options.durationMs, rate);
  clearInterval(sampling);
  const held = { before, after: await service.collect(), answers: load.answers - answersBefore };
  return { rate, answers: load.answers, faults: load.faults, samples, held };
}

/** Clients at an even pace together, each with plants of its own that come and go. */
class Load {
  answers = 0;
  readonly faults: string[] = [];
  readonly #url: string;
  readonly #token: string;
  #runs = 0;

  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  /** The answers a second. */
  async run(durationMs: number, rate: number): Promise<number> {
    this.#runs++;
    const before = this.answers;
    const startedAtMs = performance.now();
    const endAtMs = startedAtMs + durationMs;
    const paceMs = (1_000 * clientsCount) / rate;
    const clients = Array.from({ length: clientsCount }, (_, number) =>
      this.#work(number, startedAtMs + (number * paceMs) / clientsCount, endAtMs, paceMs),
    );
    await Promise.all(clients);
    return ((this.answers - before) * 1_000) / (performance.now() - startedAtMs);
  }

  async #work(number: number, startAtMs: number, endAtMs: number, paceMs: number): Promise<void> {
    const dice = makeDice(number);
    const own: string[] = [];
    let dueAtMs = startAtMs;
    for (let count = 0; performance.now() < endAtMs; count++) {
      if (dueAtMs > performance.now()) await Bun.sleep(dueAtMs - performance.now());
      dueAtMs += paceMs;
      await this.#act(`${this.#runs}-${number}-${count}`, own, dice);
    }
    for (const location of own) await this.#send("DELETE", location, 204);
  }

  /** Half are lists of a page; the rest is what else happens in a day. */
  async #act(name: string, own: string[], dice: (sides: number) => number): Promise<void> {
    const kind = dice(20);
    if (kind < 10) await this.#send("GET", `/plants?limit=20&after=${dice(1_000)}`, 200);
    else if (kind < 16) {
      const location = own.length >= plantsOfClient || kind < 13 ? own.shift() : undefined;
      if (location) await this.#send("DELETE", location, 204);
      else own.push(await this.#create(name, dice(2) === 0));
    } else if (kind === 16) await this.#send("GET", "/plants?fields=id,name,tag", 200);
    else if (kind === 17) await this.#send("GET", "/plants?limit=-1", 400);
    else if (kind === 18)
      await this.#send("GET", "/plants", 401, { authorization: `Bearer ${name}` });
    else await this.#send("GET", "/metrics", 200, { connection: "close" });
  }

  async #create(name: string, isKeyed: boolean): Promise<string> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (isKeyed) headers["idempotency-key"] = name;
    const answer = await this.#send("POST", "/plants", 201, headers, `{"name":"${name}"}`);
    return answer?.headers.get("location") ?? "/plants/0";
  }

  async #send(
    method: string,
    target: string,
    expected: number,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<Response | undefined> {
    try {
      const answer = await fetch(this.#url + target, {
        method,
        headers: { authorization: `Bearer ${this.#token}`, ...headers },
        ...(body === undefined ? {} : { body }),
      });
      await answer.arrayBuffer();
      if (answer.status !== expected) this.#note(`${method} ${target}: ${answer.status}`);
      return answer;
    } catch (error) {
      this.#note(`${method} ${target}: ${error}`);
      return undefined;
    } finally {
      this.answers++;
    }
  }

  #note(fault: string): void {
    if (this.faults.length < 100) this.faults.push(fault);
  }
}
