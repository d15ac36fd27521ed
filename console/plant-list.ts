/**
 * The plants of a list that are loaded so far, in its order. Pages extend it. What this page
 * changes goes through `put` and `remove`. Events go through `follow`, which moves nothing that
 * somebody is looking at.
 */
import { createMatcher } from "../src/domain/search.ts";
import { isSame, type Page, type Plant, type PlantEvent, type Query } from "./api.ts";

/** With `goneBecause`, it no longer belongs to the list. Its row stays until it's out of view. */
export interface ListedPlant extends Plant {
  readonly goneBecause?: "deleted" | "changed" | undefined;
}

/** The indexes of the rows in view. `last` is past the end of the list if the end is in view. */
export interface View {
  readonly first: number;
  readonly last: number;
}

export class PlantList {
  readonly query: Query;
  /** The id that the next page starts after; absent before the first page and after the last. */
  next: bigint | undefined;
  isLoaded = false;
  /** Why the last page failed to load. */
  loadError: unknown;
  readonly #hasWords: (plant: Plant) => boolean;
  #plants: ListedPlant[] = [];
  /** What others added where it would move what is in view. */
  readonly #waiting = new Map<bigint, Plant>();

  constructor(query: Query) {
    this.query = query;
    this.#hasWords = query.q === undefined ? () => true : createMatcher(query.q);
  }

  /** A new array after every change. */
  get plants(): readonly ListedPlant[] {
    return this.#plants;
  }

  /** In the order of the list. */
  get waiting(): Plant[] {
    return this.#sort([...this.#waiting.values()]);
  }

  /** How many plants are known to be in the list, shown or waiting. */
  get size(): number {
    const gone = this.#plants.filter((plant) => plant.goneBecause).length;
    return this.#plants.length - gone + this.#waiting.size;
  }

  /** Whether every plant of the list is here. */
  get isComplete(): boolean {
    return this.isLoaded && this.next === undefined;
  }

  /** Plants already here stay as they are. */
  addPage({ plants, next }: Page): void {
    const known = new Set(this.#plants.map(({ id }) => id));
    this.#insert(plants.filter(({ id }) => !known.has(id)));
    this.next = next;
    this.isLoaded = true;
  }

  /** Adds or updates plants, except where a later page will bring them. */
  put(plants: readonly Plant[]): void {
    this.remove(plants);
    this.#insert(plants.filter((plant) => this.#belongs(plant)));
  }

  remove(plants: readonly Pick<Plant, "id">[]): void {
    const ids = new Set(plants.map(({ id }) => id));
    for (const id of ids) this.#waiting.delete(id);
    this.#plants = this.#plants.filter(({ id, goneBecause }) => !ids.has(id) && !goneBecause);
  }

  /**
   * Applies events. Plants change in place. If one leaves the list, its row stays while it's in
   * view. New plants wait, unless they belong below everything in view. Returns the ids of plants
   * that changed or appeared.
   */
  follow(events: readonly PlantEvent[], view: View): bigint[] {
    const latest = new Map(events.map((event) => [event.plant.id, event]));
    const fresh: bigint[] = [];
    this.#plants = this.#plants.flatMap((plant, index) => {
      const event = latest.get(plant.id);
      latest.delete(plant.id);
      const now = event ? this.#toListed(plant, event) : plant;
      if (now !== plant) fresh.push(plant.id);
      return now.goneBecause && (index < view.first || index > view.last) ? [] : now;
    });
    for (const [id, { type, plant }] of latest) {
      if (type !== "plant.deleted" && this.#belongs(plant)) this.#waiting.set(id, plant);
      else this.#waiting.delete(id);
    }
    const end = this.#plants.at(-1);
    if (view.last < this.#plants.length) return fresh;
    return [...fresh, ...this.admit(({ id }) => !end || this.isBefore(end.id, id))];
  }

  /** Lists waiting plants, and returns their ids in the order of the list. */
  admit(isReady: (plant: Plant) => boolean = () => true): bigint[] {
    const plants = this.waiting.filter(isReady);
    for (const { id } of plants) this.#waiting.delete(id);
    this.#insert(plants);
    return plants.map(({ id }) => id);
  }

  /** Whether `a` comes before `b` in this list. */
  isBefore(a: bigint, b: bigint): boolean {
    return this.query.order === "desc" ? a > b : a < b;
  }

  /** Whether the plant is in the list, and not on a later page. */
  #belongs(plant: Plant): boolean {
    const { next } = this;
    const isNear = next === undefined || plant.id === next || this.isBefore(plant.id, next);
    return isNear && this.#matches(plant);
  }

  #matches(plant: Plant): boolean {
    const { tag, q } = this.query;
    const isFound = this.#hasWords(plant) || String(plant.id) === q;
    return isFound && (tag === undefined || plant.tag === tag);
  }

  #toListed(before: ListedPlant, { type, plant }: PlantEvent): ListedPlant {
    if (type === "plant.deleted") return { ...plant, goneBecause: "deleted" };
    if (!this.#matches(plant)) return { ...plant, goneBecause: "changed" };
    return isSame(before, plant) && !before.goneBecause ? before : plant;
  }

  #insert(plants: readonly Plant[]): void {
    this.#plants = this.#sort([...this.#plants, ...plants]);
  }

  #sort(plants: Plant[]): Plant[] {
    return plants.sort((a, b) => (this.isBefore(a.id, b.id) ? -1 : 1));
  }
}
