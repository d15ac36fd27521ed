/**
 * The plants of a list that are loaded so far, in its order. Pages extend it. What this page
 * changes goes through `put` and `remove`. Events go through `follow`, which moves nothing that
 * somebody is looking at.
 */
import { batch, computed, signal } from "@preact/signals";
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
  readonly #hasWords: (plant: Plant) => boolean;
  readonly #plants = signal<readonly ListedPlant[]>([]);
  /** What others added where it would move what is in view. */
  readonly #waiting = signal<ReadonlyMap<bigint, Plant>>(new Map());
  readonly #sorted = computed(() => this.#sort([...this.#waiting.value.values()]));
  readonly #gone = computed(() => this.plants.filter((plant) => plant.goneBecause).length);
  readonly #loaded = signal<Pick<Page, "next"> | undefined>();
  /** Why the last page failed to load. */
  readonly error = signal<unknown>();

  constructor(query: Query) {
    this.query = query;
    this.#hasWords = query.q === undefined ? () => true : createMatcher(query.q);
  }

  /** A new array after every change. */
  get plants(): readonly ListedPlant[] {
    return this.#plants.value;
  }

  /** In the order of the list. */
  get waiting(): readonly Plant[] {
    return this.#sorted.value;
  }

  /** The id that the next page starts after; absent before the first page and after the last. */
  get next(): bigint | undefined {
    return this.#loaded.value?.next;
  }

  get isLoaded(): boolean {
    return this.#loaded.value !== undefined;
  }

  /** Whether every plant of the list is here. */
  get isComplete(): boolean {
    return this.isLoaded && this.next === undefined;
  }

  /** How many plants are known to be in the list, shown or waiting. */
  get size(): number {
    return this.plants.length - this.#gone.value + this.#waiting.value.size;
  }

  find(id: bigint): ListedPlant | undefined {
    return this.plants.find((plant) => plant.id === id);
  }

  /** Whether it has nothing that waits, and no row that stays only while it's in view. */
  get isSettled(): boolean {
    return this.#waiting.value.size === 0 && this.#gone.value === 0;
  }

  /** Plants already here stay as they are. */
  addPage({ plants, next }: Page): void {
    const known = new Set(this.plants.map(({ id }) => id));
    batch(() => {
      this.#insert(plants.filter(({ id }) => !known.has(id)));
      this.#loaded.value = { next };
    });
  }

  /** Adds or updates plants, except where a later page will bring them. */
  put(plants: readonly Plant[]): void {
    batch(() => {
      this.remove(plants);
      this.#insert(plants.filter((plant) => this.#belongs(plant)));
    });
  }

  remove(plants: readonly Pick<Plant, "id">[]): void {
    const ids = new Set(plants.map(({ id }) => id));
    batch(() => {
      this.#stopWaiting(ids);
      this.#plants.value = this.plants.filter((each) => !ids.has(each.id) && !each.goneBecause);
    });
  }

  /**
   * Applies events. Plants change in place. If one leaves the list, its row stays while it's in
   * view. New plants wait, unless they belong below everything in view. Returns the ids of plants
   * that changed or appeared.
   */
  follow(events: readonly PlantEvent[], view: View): bigint[] {
    return batch(() => {
      const latest = new Map(events.map((event) => [event.plant.id, event]));
      const fresh: bigint[] = [];
      this.#plants.value = this.plants.flatMap((plant, index) => {
        const event = latest.get(plant.id);
        latest.delete(plant.id);
        const now = event ? this.#toListed(plant, event) : plant;
        if (now !== plant) fresh.push(plant.id);
        return now.goneBecause && (index < view.first || index > view.last) ? [] : now;
      });
      const waiting = new Map(this.#waiting.value);
      for (const [id, { type, plant }] of latest) {
        if (type !== "plant.deleted" && this.#belongs(plant)) waiting.set(id, plant);
        else waiting.delete(id);
      }
      this.#waiting.value = waiting;
      const end = this.plants.at(-1);
      if (view.last < this.plants.length) return fresh;
      return [...fresh, ...this.admit(({ id }) => !end || this.isBefore(end.id, id))];
    });
  }

  /** Lists waiting plants, and returns their ids in the order of the list. */
  admit(isReady: (plant: Plant) => boolean = () => true): bigint[] {
    const plants = this.waiting.filter(isReady);
    const ids = plants.map(({ id }) => id);
    batch(() => {
      this.#stopWaiting(new Set(ids));
      if (ids.length > 0) this.#insert(plants);
    });
    return ids;
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
    this.#plants.value = this.#sort([...this.plants, ...plants]);
  }

  #stopWaiting(ids: ReadonlySet<bigint>): void {
    const waiting = this.#waiting.value;
    if (waiting.size > 0)
      this.#waiting.value = new Map([...waiting].filter(([id]) => !ids.has(id)));
  }

  #sort(plants: Plant[]): Plant[] {
    return plants.sort((a, b) => (this.isBefore(a.id, b.id) ? -1 : 1));
  }
}
