/**
 * How many rows of a table each garden may hold, and does hold. All writes of a file go through one
 * connection, so a garden is counted when it is first added to, and kept count of from then on.
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
  readonly max: number;
  readonly #countedMax: number;
  /** Gardens that were not counted to the end: they hold as many at least. */
  readonly #uncounted = new Set<string>();
  readonly #held = new Map<string, number>();
  readonly #countRows: (garden: string) => number;

  constructor(database: Database, table: "plants" | "idempotency_hashes", max: number) {
    this.max = max;
    this.#countedMax = Math.ceil(max * countedShare) + 1;
    const count = database.query<{ held: bigint }, [string, number]>(
      `SELECT count(*) AS held FROM (SELECT 1 FROM ${table} WHERE garden = ? LIMIT +?)`,
    );
    this.#countRows = (garden) => Number(count.get(garden, this.#countedMax)?.held);
  }

  isFull(garden: string): boolean {
    let held = this.#held.get(garden);
    if (held === undefined) {
      if (this.#held.size >= knownGardensMax) this.forget();
      held = this.#countRows(garden);
      this.#held.set(garden, held);
      if (held === this.#countedMax) this.#uncounted.add(garden);
    }
    return held >= this.max;
  }

  count(garden: string, change: number): void {
    const before = this.#held.get(garden);
    if (before === undefined) return;
    const held = before + change;
    const isUnknown = held < this.max && this.#uncounted.delete(garden);
    if (isUnknown) this.#held.delete(garden);
    else this.#held.set(garden, held);
  }

  /** What was counted did not last. */
  forget(): void {
    this.#held.clear();
    this.#uncounted.clear();
  }
}
