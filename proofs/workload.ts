/**
 * Clients that create, put, delete and look up plants without rest, at random, on several instances
 * of the service. One of them creates many at once. Every response goes into the ledger.
 */
import { makeDice, spread } from "../testing/dice.ts";
import type { Caller } from "../testing/kept-connection.ts";
import { waitFor } from "../testing/running-service.ts";
import type { Ledger, NewBulk } from "./ledger.ts";
import { type Outcome, type OwnPlant, PlantClient } from "./plant-client.ts";

const pauseMs = 10;
const retryMs = 100;
/** Far longer than any failure that a proof causes lasts. */
const triesMax = 1_200;

type Dice = (sides: number) => number;

export type Instance = Caller & { readonly token: string };

export class Workload {
  /** The longest time in which one of the instances confirmed no write. */
  longestGapMs = 0;
  readonly #lastWrites = new Map<Instance, number>();
  readonly #clients: Promise<void>[];
  #isStopping = false;
  #isPatient = true;

  constructor(
    private readonly instances: readonly Instance[],
    private readonly ledger: Ledger,
    /** Without `bulkPlantsMax`, no bulks. */
    options: {
      readonly clients: number;
      readonly seed: number;
      readonly bulkPlantsMax?: number;
    },
  ) {
    const { clients, seed, bulkPlantsMax } = options;
    const first = seed * 1_000;
    this.#clients = Array.from({ length: clients }, (_, index) => this.#run(first + index));
    if (bulkPlantsMax) this.#clients.push(this.#runBulks(first + clients, bulkPlantsMax));
  }

  /** Until every instance has confirmed another write. */
  async untilWritten(): Promise<void> {
    const sinceMs = performance.now();
    const hasWritten = (each: Instance) => (this.#lastWrites.get(each) ?? 0) > sinceMs;
    await waitFor(() => this.instances.every(hasWritten) || undefined);
  }

  /** Resolves when every client has finished what it was doing, or given up if not patient. */
  async stop(isPatient = true): Promise<void> {
    this.#isStopping = true;
    this.#isPatient = isPatient;
    await Promise.all(this.#clients);
  }

  async #run(number: number): Promise<void> {
    const dice = makeDice(spread(number));
    const own: OwnPlant[] = [];
    for (let count = 0; !this.#isStopping; count++) {
      const choice = dice(8);
      const doomed = choice < 2 ? own.splice(dice(own.length), 1)[0] : undefined;
      const replaced = choice === 2 ? own[dice(own.length)] : undefined;
      if (doomed) await this.#retry(dice, (client) => client.delete(doomed));
      else if (replaced) await this.#put(replaced, dice);
      else own.push(...(await this.#create(number, count, dice)));
      await Bun.sleep(dice(2 * pauseMs));
    }
  }

  /** Bulks of many sizes, until one gets no response. The last one is sent twice. */
  async #runBulks(number: number, bulkPlantsMax: number): Promise<void> {
    const dice = makeDice(spread(number));
    let bulk: NewBulk = { key: "", plants: [] };
    const create = () => this.#retry(dice, (client) => client.createMany(bulk));
    for (let count = 0; !this.#isStopping; count++) {
      bulk = makeBulk(number, count, bulkPlantsMax, dice);
      if ((await create()) !== "done") return;
      const { name } = bulk.plants[dice(bulk.plants.length)] as { name: string };
      const { id = "" } = this.ledger.find(name) ?? {};
      if (dice(2) === 0) await this.#put({ name, id }, dice);
      else await this.#retry(dice, (client) => client.delete({ name, id }));
      await Bun.sleep(dice(pauseMs));
    }
    await create();
  }

  /** Half of the plants have a key, and a third an id of their own. Returns the plant, if any. */
  async #create(number: number, count: number, dice: Dice): Promise<OwnPlant[]> {
    const name = `${number}-${count}`;
    // Chosen ids are negative, so that the service assigns none of them to another plant.
    const id = dice(3) === 0 ? String(-number * 1_000_000 - count) : undefined;
    const isKeyed = dice(2) === 0;
    const create = (client: PlantClient) => client.create({ name, id, isKeyed });
    if (id !== undefined && dice(2) === 0) await this.#put({ name, id }, dice);
    else if (isKeyed || id !== undefined) await this.#retry(dice, create);
    else await create(this.#pick(dice));
    const created = this.ledger.find(name);
    return created?.state === "present" && created.id !== undefined
      ? [{ name, id: created.id }]
      : [];
  }

  /** Its next version, or its first one. */
  #put(plant: OwnPlant, dice: Dice): Promise<Outcome> {
    const version = Math.max(-1, ...(this.ledger.find(plant.name)?.versions ?? [])) + 1;
    return this.#retry(dice, (client) => client.put(plant, version));
  }

  /** Sends a request again, to any instance, while the service is unavailable. */
  async #retry(dice: Dice, send: (client: PlantClient) => Promise<Outcome>): Promise<Outcome> {
    for (let tries = 1; tries <= triesMax; tries++) {
      const outcome = await send(this.#pick(dice));
      if (outcome !== "unavailable" || !this.#isPatient) return outcome;
      await Bun.sleep(retryMs);
    }
    this.ledger.fault(`unavailable ${triesMax} times, one after the other`);
    return "failed";
  }

  #pick(dice: Dice): PlantClient {
    const instance = this.instances[dice(this.instances.length)] as Instance;
    const call: Caller["call"] = async (request, init) => {
      const response = await instance.call(request, init);
      if (response.ok && !request.startsWith("GET")) this.#noteWrite(instance);
      return response;
    };
    return new PlantClient({ call }, { ledger: this.ledger, token: instance.token });
  }

  #noteWrite(instance: Instance): void {
    const nowMs = performance.now();
    const gapMs = nowMs - (this.#lastWrites.get(instance) ?? nowMs);
    this.longestGapMs = Math.max(this.longestGapMs, gapMs);
    this.#lastWrites.set(instance, nowMs);
  }
}

/** As many small bulks as large ones; a few plants have ids of their own. */
function makeBulk(number: number, count: number, bulkPlantsMax: number, dice: Dice): NewBulk {
  const key = `${number}-${count}`;
  const length = Math.round(bulkPlantsMax ** (dice(101) / 100));
  const plants = Array.from({ length }, (_, index) => ({
    name: `${key}/${index}`,
    id: dice(20) === 0 ? String(-(number * 1_000_000 + count * bulkPlantsMax + index)) : undefined,
  }));
  return { key, plants };
}
