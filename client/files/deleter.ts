/** Deletes plants a request at a time, and knows how many it deleted, even if it fails midway. */
import type { ManyOptions, PlantStore } from "../plant-store.ts";
import { isRefused } from "../problem-error.ts";

/** What the service takes in one request. */
const idsMax = 10_000;

export class Deleter {
  /** At least. */
  deleted = 0;
  /** Deleted for certain, but perhaps not by this. They count as deleted. */
  unconfirmed = 0;
  /** Already gone. */
  missing = 0;
  /** How many ids the last request had, if its outcome is unknown. */
  #pending = 0;
  readonly #store: PlantStore;
  readonly #left: bigint[];
  readonly #calls: ManyOptions;

  /** Takes ids from `left` once their outcome is known. */
  constructor(store: PlantStore, left: bigint[], calls: ManyOptions = {}) {
    this.#store = store;
    this.#left = left;
    this.#calls = calls;
  }

  get deletedMax(): number {
    return this.deleted + this.#pending;
  }

  /** Goes on where it failed, if it's called again. */
  async run(): Promise<void> {
    while (this.#left.length > 0) await this.#deleteSome(this.#left.slice(0, idsMax));
  }

  async #deleteSome(ids: readonly bigint[]): Promise<void> {
    // What a repeated request misses, the first one has deleted.
    const isRepeated = this.#pending > 0;
    this.#pending = ids.length;
    try {
      for (const result of await this.#store.deleteMany(ids, this.#calls)) {
        if (result.status === 404 && !isRepeated) this.missing++;
        else this.deleted++;
        if (result.status === 204 && !result.confirmed) this.unconfirmed++;
      }
    } catch (error) {
      const isNotSent = error === this.#calls.stop?.reason || isRefused(error);
      if (isNotSent && !isRepeated) this.#pending = 0;
      throw error;
    }
    this.#pending = 0;
    this.#left.splice(0, ids.length);
  }
}
