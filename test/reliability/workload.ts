/**
 * Clients that create, delete and look up plants without rest, at random, on several instances of
 * the service. Every response goes into the ledger.
 */
import { makeDice, spread } from "../dice.ts";
import type { Ledger } from "./ledger.ts";
import { type Caller, type Outcome, PlantClient } from "./plant-client.ts";

const pauseMs = 10;
const retryMs = 100;

export interface Instance extends Caller {
  readonly token: string;
}

interface OwnPlant {
  readonly name: string;
  readonly id: string;
}

export class Workload {
  /** By instance, when the first write succeeded since this was last cleared. */
  readonly firstWrites = new Map<Instance, number>();
  /** The longest request. */
  longestMs = 0;
  /** The longest time in which one of the instances confirmed no write. */
  longestGapMs = 0;
  readonly #lastWrites = new Map<Instance, number>();
  readonly #instances: readonly Instance[];
  readonly #ledger: Ledger;
  readonly #clients: Promise<void>[];
  #isStopping = false;

  constructor(instances: readonly Instance[], ledger: Ledger, clients: number, seed: number) {
    this.#instances = instances;
    this.#ledger = ledger;
    this.#clients = Array.from({ length: clients }, (_, index) => this.#run(seed * 1_000 + index));
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
      const doomed = dice(3) === 0 ? own.splice(dice(own.length), 1)[0] : undefined;
      if (doomed) await this.#retry(dice, (client) => client.delete(doomed));
      else {
        const plant = await this.#create(number, count, dice);
        if (plant) own.push(plant);
        if (plant && dice(4) === 0) await this.#pick(dice).find(plant);
      }
      await Bun.sleep(dice(2 * pauseMs));
    }
  }

  async #create(
    number: number,
    count: number,
    dice: (sides: number) => number,
  ): Promise<OwnPlant | undefined> {
    const name = `${number}-${count}`;
    // Chosen ids are negative, so that the service assigns none of them to another plant.
    const id = dice(3) === 0 ? String(-number * 1_000_000 - count) : undefined;
    const plant = { name, id, isKeyed: dice(2) === 0 };
    const create = (client: PlantClient) => client.create(plant);
    const isRepeatable = plant.isKeyed || id !== undefined;
    const outcome = isRepeatable ? await this.#retry(dice, create) : await create(this.#pick(dice));
    const created = outcome === "done" ? this.#ledger.idOf(name) : undefined;
    return created === undefined ? undefined : { name, id: created };
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
        if (response.status === 201 || response.status === 204) this.#noteWrite(instance);
        return response;
      } finally {
        this.longestMs = Math.max(this.longestMs, performance.now() - startedAtMs);
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
