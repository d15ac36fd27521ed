/**
 * How many plants gardens may hold, and do hold. All writes of a file go through one connection, so
 * a garden is counted when it is first added to, and kept count of from then on.
 */
import type { Database } from "bun:sqlite";

/** Beyond this many, all are counted again when they are next added to. */
const knownGardensMax = 65_536;

/**
 * A garden may hold more, from before there was a quota. It is counted so far beyond, and again
 * when so many were deleted: one that was counted anew for each deletion held all writers up.
 */
const countedShare = 1.25;

export class Quota {
  readonly plantsMax: number;
  readonly #countedMax: number;
  /** Gardens that were not counted to the end: they hold as many at least. */
  readonly #uncounted = new Set<string>();
  readonly #plants = new Map<string, number>();
  readonly #countPlants: (garden: string) => number;

  constructor(database: Database, plantsMax: number) {
    this.plantsMax = plantsMax;
    this.#countedMax = Math.ceil(plantsMax * countedShare) + 1;
    const count = database.query<{ plants: bigint }, [string, number]>(
      "SELECT count(*) AS plants FROM (SELECT 1 FROM plants WHERE garden = ? LIMIT +?)",
    );
    this.#countPlants = (garden) => Number(count.get(garden, this.#countedMax)?.plants);
  }

  isFull(garden: string): boolean {
    let plants = this.#plants.get(garden);
    if (plants === undefined) {
      if (this.#plants.size >= knownGardensMax) this.forget();
      plants = this.#countPlants(garden);
      this.#plants.set(garden, plants);
      if (plants === this.#countedMax) this.#uncounted.add(garden);
    }
    return plants >= this.plantsMax;
  }

  count(garden: string, change: number): void {
    const before = this.#plants.get(garden);
    if (before === undefined) return;
    const plants = before + change;
    const isUnknown = plants < this.plantsMax && this.#uncounted.delete(garden);
    if (isUnknown) this.#plants.delete(garden);
    else this.#plants.set(garden, plants);
  }

  /** What was counted did not last. */
  forget(): void {
    this.#plants.clear();
    this.#uncounted.clear();
  }
}
