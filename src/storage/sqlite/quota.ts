/**
 * How many plants gardens may hold, and do hold. All writes of a file go through one connection, so
 * a garden is counted when it is first added to, and kept count of from then on.
 */
import type { Database } from "bun:sqlite";

/** Beyond this many, all are counted again when they are next added to. */
const knownGardensMax = 65_536;

export class Quota {
  readonly plantsMax: number;
  /** One more than `plantsMax` stands for any number above it. */
  readonly #plants = new Map<string, number>();
  readonly #countPlants: (garden: string) => number;

  constructor(database: Database, plantsMax: number) {
    this.plantsMax = plantsMax;
    const count = database.query<{ plants: bigint }, [string, number]>(
      "SELECT count(*) AS plants FROM (SELECT 1 FROM plants WHERE garden = ? LIMIT +?)",
    );
    this.#countPlants = (garden) => Number(count.get(garden, plantsMax + 1)?.plants);
  }

  isFull(garden: string): boolean {
    let plants = this.#plants.get(garden);
    if (plants === undefined) {
      if (this.#plants.size >= knownGardensMax) this.forget();
      plants = this.#countPlants(garden);
      this.#plants.set(garden, plants);
    }
    return plants >= this.plantsMax;
  }

  count(garden: string, change: number): void {
    const plants = this.#plants.get(garden);
    if (plants === undefined) return;
    if (plants > this.plantsMax) this.#plants.delete(garden);
    else this.#plants.set(garden, plants + change);
  }

  /** What was counted did not last. */
  forget(): void {
    this.#plants.clear();
  }
}
