/**
 * Clients that create, put, delete and look up plants without rest, at random, on several instances
 * of the service. One of them creates many at once. Every response goes into the ledger.
 */
import { makeDice, spread } from "../dice.ts";
import { KeptConnection, writeRequest } from "./kept-connection.ts";
import type { Ledger } from "./ledger.ts";
import {
  type Caller,
  type NewBatch,
  type Outcome,
  type OwnPlant,
  PlantClient,
} from "./plant-client.ts";

const pauseMs = 10;
const retryMs = 100;
const stallMs = 3_000;

export interface Instance extends Caller {
  readonly token: string;
}

export interface WorkloadOptions {
  readonly clients: number;
  readonly seed: number;
  /** The most lines of a batch. Without it, there are no batches. */
  readonly linesMax?: number;
  /** As 0.5 takes it: no puts, and no preconditions. */
  readonly isOld?: boolean;
  /** How many more list all plants at this port, and stop reading for seconds. */
  readonly slowReaders?: { readonly count: number; readonly port: number };
}

export class Workload {
  /** By instance, when the first write succeeded since this was last cleared. */
  readonly firstWrites = new Map<Instance, number>();
  /** The longest request. */
  longestMs = 0;
  /** The longest time in which one of the instances confirmed no write. */
  longestGapMs = 0;
  readonly #lastWrites = new Map<Instance, number>();
  readonly figures = {
    requests: 0,
    "slow reads": 0,
    "puts confirmed": 0,
    "bulks confirmed": 0,
    "bulks found in part": 0,
    "lines resent": 0,
  };
  readonly #instances: readonly Instance[];
  readonly #ledger: Ledger;
  readonly #clients: Promise<void>[];
  readonly #isOld: boolean;
  #isStopping = false;

  constructor(instances: readonly Instance[], ledger: Ledger, options: WorkloadOptions) {
    const { clients, seed, linesMax, isOld = false, slowReaders } = options;
    this.#isOld = isOld;
    this.#instances = instances;
    this.#ledger = ledger;
    const first = seed * 1_000;
    this.#clients = Array.from({ length: clients }, (_, index) => this.#run(first + index));
    if (linesMax !== undefined) this.#clients.push(this.#runBulks(first + clients, linesMax));
    for (let count = 1; slowReaders && count <= slowReaders.count; count++) {
      this.#clients.push(this.#readSlowly(slowReaders.port, first + clients + count));
    }
  }

  /** Resolves when every client has finished what it was doing. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#clients);
  }

  async #run(number: number): Promise<void> {
    const dice = makeDice(spread(number));
    const own: OwnPlant[] = [];
    for (let count = 0; !this.#isStopping; count++) {
      const choice = dice(8);
      const isPut = choice === 2 && !this.#isOld;
      const doomed = choice < 2 ? own.splice(dice(own.length), 1)[0] : undefined;
      const replaced = isPut ? own[dice(own.length)] : undefined;
      if (doomed) await this.#delete(doomed, dice);
      else if (replaced) await this.#put(replaced, dice);
      else {
        const plant = await this.#create(number, count, dice);
        if (plant) own.push(plant);
        if (plant && dice(4) === 0) await this.#pick(dice).find(plant);
      }
      await Bun.sleep(dice(2 * pauseMs));
    }
  }

  /**
   * Batches of many sizes, until one gets no response. The last one is sent once more, even though
   * it is confirmed.
   */
  async #runBulks(number: number, linesMax: number): Promise<void> {
    const dice = makeDice(spread(number));
    let batch: NewBatch = { key: "", plants: [] };
    for (let count = 0; !this.#isStopping; count++) {
      batch = makeBatch(number, count, linesMax, dice);
      if ((await this.#createMany(batch, dice)) === "failed") return;
      const { name } = batch.plants[dice(batch.plants.length)] as { name: string };
      const id = this.#ledger.find(name)?.id;
      if (id !== undefined && dice(2) === 0) await this.#put({ name, id }, dice);
      else if (id !== undefined) await this.#delete({ name, id }, dice);
      await Bun.sleep(dice(pauseMs));
    }
    await this.#createMany(batch, dice);
  }

  /** What they read may be cut off when an instance is killed; it must not be refused. */
  async #readSlowly(port: number, number: number): Promise<void> {
    const dice = makeDice(spread(number));
    const { token } = this.#instances[number % this.#instances.length] as Instance;
    while (!this.#isStopping) {
      const connection = await KeptConnection.open({ port, isSecure: false });
      const asked = connection.ask(writeRequest("GET /plants?fields=id,name", { token }));
      const reading = asked.catch(() => undefined);
      const { resume } = await connection.pauseAtFirst();
      await Bun.sleep(dice(stallMs));
      resume();
      const status = (await reading)?.status ?? 200;
      if (![200, 502, 503, 504].includes(status)) this.#ledger.fault(`slow list: ${status}`);
      this.figures["slow reads"]++;
      connection.close();
    }
  }

  async #createMany(batch: NewBatch, dice: (sides: number) => number): Promise<Outcome> {
    let attempts = 0;
    return await this.#retry(dice, async (client) => {
      if (attempts++ > 0) this.figures["lines resent"] += batch.plants.length;
      const { outcome, replayed } = await client.createMany(batch);
      if (outcome === "done") this.figures["bulks confirmed"]++;
      const isPart = replayed > 0 && replayed < batch.plants.length;
      if (isPart) this.figures["bulks found in part"]++;
      return outcome;
    });
  }

  async #create(
    number: number,
    count: number,
    dice: (sides: number) => number,
  ): Promise<OwnPlant | undefined> {
    const name = `${number}-${count}`;
    // Chosen ids are negative, so that the service assigns none of them to another plant.
    const id = dice(3) === 0 ? String(-number * 1_000_000 - count) : undefined;
    if (id !== undefined && dice(2) === 0 && !this.#isOld) {
      return (await this.#put({ name, id }, dice)) === "done" ? { name, id } : undefined;
    }
    const plant = { name, id, isKeyed: dice(2) === 0 };
    const create = (client: PlantClient) => client.create(plant);
    const isRepeatable = plant.isKeyed || id !== undefined;
    const outcome = isRepeatable ? await this.#retry(dice, create) : await create(this.#pick(dice));
    const created = outcome === "done" ? this.#ledger.find(name)?.id : undefined;
    return created === undefined ? undefined : { name, id: created };
  }

  /** Its next version, or its first one. Half of the puts and deletes have a precondition. */
  async #put(plant: OwnPlant, dice: (sides: number) => number): Promise<Outcome> {
    const version = Math.max(-1, ...(this.#ledger.find(plant.name)?.versions ?? [])) + 1;
    const isGuarded = dice(2) === 0;
    const outcome = await this.#retry(dice, (client) => client.put(plant, version, isGuarded));
    if (outcome === "done") this.figures["puts confirmed"]++;
    return outcome;
  }

  #delete(plant: OwnPlant, dice: (sides: number) => number): Promise<Outcome> {
    const isGuarded = dice(2) === 0 && !this.#isOld;
    return this.#retry(dice, (client) => client.delete(plant, isGuarded));
  }

  /** Sends a request again, to any instance, for as long as the service is unavailable. */
  async #retry(
    dice: (sides: number) => number,
    send: (client: PlantClient) => Promise<Outcome>,
  ): Promise<Outcome> {
    for (;;) {
      const outcome = await send(this.#pick(dice));
      if (outcome !== "unavailable") return outcome;
      await Bun.sleep(retryMs);
    }
  }

  #pick(dice: (sides: number) => number): PlantClient {
    const instance = this.#instances[dice(this.#instances.length)] as Instance;
    const call: Caller["call"] = async (request, init) => {
      const startedAtMs = performance.now();
      try {
        const response = await instance.call(request, init);
        if (response.ok && !request.startsWith("GET")) this.#noteWrite(instance);
        return response;
      } finally {
        this.longestMs = Math.max(this.longestMs, performance.now() - startedAtMs);
        this.figures.requests++;
      }
    };
    return new PlantClient({ call }, { ledger: this.#ledger, token: instance.token });
  }

  #noteWrite(instance: Instance): void {
    const nowMs = performance.now();
    if (!this.firstWrites.has(instance)) this.firstWrites.set(instance, nowMs);
    const gapMs = nowMs - (this.#lastWrites.get(instance) ?? nowMs);
    this.longestGapMs = Math.max(this.longestGapMs, gapMs);
    this.#lastWrites.set(instance, nowMs);
  }
}

/** As many small batches as large ones; a few lines have ids of their own. */
function makeBatch(
  number: number,
  count: number,
  linesMax: number,
  dice: (sides: number) => number,
): NewBatch {
  const key = `${number}-${count}`;
  const lines = Math.round(linesMax ** (dice(101) / 100));
  const plants = Array.from({ length: lines }, (_, line) => ({
    name: `${key}/${line}`,
    id: dice(20) === 0 ? String(-(number * 1_000_000 + count * linesMax + line)) : undefined,
  }));
  return { key, plants };
}
