/**
 * The plants of a list that are loaded so far, in its order. Pages extend it, and whatever else is
 * known to have changed goes through `put` and `remove`, which can be repeated without harm.
 */
import type { Page, Plant, Query } from "./api.ts";

export class Garden {
  readonly query: Query;
  /** The id that the next page starts after; absent before the first page and after the last. */
  next: bigint | undefined;
  isLoaded = false;
  isLoading = false;
  /** Why the last page didn't come. */
  loadError: unknown;
  readonly #matches: (plant: Plant) => boolean;
  #plants: Plant[] = [];
  /** Ids that a page may still bring, because it was read before the plant was deleted. */
  readonly #removed = new Set<bigint>();

  /** `matches` decides which plants belong here. */
  constructor(query: Query, matches: (plant: Plant) => boolean) {
    this.query = query;
    this.#matches = matches;
  }

  /** Another array whenever something has changed. */
  get plants(): readonly Plant[] {
    return this.#plants;
  }

  get size(): number {
    return this.#plants.length;
  }

  /** Whether every plant of the list is here. */
  get isComplete(): boolean {
    return this.isLoaded && this.next === undefined;
  }

  /** Plants already here stay as they are, and removed ones stay away. */
  addPage({ plants, next }: Page): void {
    const known = new Set(this.#plants.map(({ id }) => id));
    this.#insert(plants.filter(({ id }) => !known.has(id) && !this.#removed.has(id)));
    this.next = next;
    this.isLoaded = true;
  }

  /** Plants as they are now. Those that a later page will bring are left to it. */
  put(plants: readonly Plant[]): void {
    this.#take(plants);
    for (const { id } of plants) this.#removed.delete(id);
    const { next } = this;
    const isNear = (id: bigint) => next === undefined || id === next || this.#isBefore(id, next);
    this.#insert(plants.filter((plant) => isNear(plant.id) && this.#matches(plant)));
  }

  remove(plants: readonly Pick<Plant, "id">[]): void {
    this.#take(plants);
    for (const { id } of plants) this.#removed.add(id);
  }

  #take(plants: readonly Pick<Plant, "id">[]): void {
    const ids = new Set(plants.map(({ id }) => id));
    this.#plants = this.#plants.filter(({ id }) => !ids.has(id));
  }

  #insert(plants: readonly Plant[]): void {
    this.#plants = [...this.#plants, ...plants].sort((a, b) =>
      this.#isBefore(a.id, b.id) ? -1 : 1,
    );
  }

  #isBefore(a: bigint, b: bigint): boolean {
    return this.query.order === "desc" ? a > b : a < b;
  }
}
