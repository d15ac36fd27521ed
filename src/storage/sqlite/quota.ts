/**
 * How many rows of a table each garden may hold, and does hold. All writes of a file go through one
 * connection, so a garden is counted when it is first added to, and kept count of from then on.
 */
import type { Database } from "bun:sqlite";

/** Beyond this many, all are counted again when they are next added to. */
const knownGardensMax = 65_536;

export class Quota {
  readonly max: number;
  readonly #held = new Map<string, number>();
  readonly #countRows: (garden: string) => number;

  constructor(database: Database, table: "plants" | "idempotency_hashes", max: number) {
    this.max = max;
    const count = database.query<{ held: bigint }, [string]>(
      `SELECT count(*) AS held FROM ${table} WHERE garden = ?`,
    );
    this.#countRows = (garden) => Number(count.get(garden)?.held);
  }

  isFull(garden: string): boolean {
    let held = this.#held.get(garden);
    if (held === undefined) {
      if (this.#held.size >= knownGardensMax) this.forget();
      held = this.#countRows(garden);
      this.#held.set(garden, held);
    }
    return held >= this.max;
  }

  count(garden: string, change: number): void {
    const held = this.#held.get(garden);
    if (held !== undefined) this.#held.set(garden, held + change);
  }

  /** What was counted did not last. */
  forget(): void {
    this.#held.clear();
  }
}
