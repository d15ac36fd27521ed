/**
 * How many plants gardens may hold, and do hold where they may be full. Whoever asks has locked
 * them, so nobody adds to them meanwhile; deletions go on, and can only make room.
 */
import type { ClientBase } from "pg";

interface LockedGarden {
  readonly garden: string;
  /** With those that the group wants to add. Null: nobody has counted. */
  readonly plants_bound: bigint | null;
}

export class Quota {
  readonly plantsMax: number;
  /** The plants of gardens that may be full. All others have room for the whole group. */
  readonly #crowded: Map<string, number>;

  private constructor(plantsMax: number, crowded: Map<string, number>) {
    this.plantsMax = plantsMax;
    this.#crowded = crowded;
  }

  /** Before the group began: what it has deleted counts, because creates may come before that. */
  static async read(
    client: ClientBase,
    plantsMax: number,
    wanted: ReadonlyMap<string, readonly unknown[]>,
    locked: readonly LockedGarden[],
    gone: readonly { readonly garden: string }[],
  ): Promise<Quota> {
    const crowded = new Map<string, number>();
    for (const { garden, plants_bound } of locked) {
      // Of a garden whose row is new nothing is known: its plants may have been moved here without
      // one.
      const isKnown = plants_bound !== null && plants_bound > (wanted.get(garden)?.length ?? 0);
      if (isKnown && plants_bound <= plantsMax) continue;
      const { rows } = await client.query(
        "SELECT count(*) AS plants FROM (SELECT 1 FROM plants WHERE garden = $1 LIMIT $2) AS counted",
        [garden, plantsMax + 1],
      );
      const deleted = gone.filter((place) => place.garden === garden).length;
      crowded.set(garden, Number(rows[0].plants) + deleted);
    }
    return new Quota(plantsMax, crowded);
  }

  isFull(garden: string): boolean {
    return (this.#crowded.get(garden) ?? 0) >= this.plantsMax;
  }

  count(garden: string, change: number): void {
    const plants = this.#crowded.get(garden);
    if (plants !== undefined) this.#crowded.set(garden, plants + change);
  }

  /** What was counted; null where there were so many that they were not counted to the end. */
  bounds(): Map<string, number | null> {
    return new Map(
      Array.from(this.#crowded, ([garden, plants]) => [
        garden,
        plants > this.plantsMax ? null : plants,
      ]),
    );
  }
}
