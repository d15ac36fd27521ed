/**
 * The plants of a list that are loaded so far, in its order. Pages extend it. What this page
 * changes goes through `put`. Events go through `follow`, which moves nothing that somebody is
 * looking at.
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
  readonly #hasWords: (plant: Plant) => boolean;
  readonly #plants = signal<readonly ListedPlant[]>([]);
  readonly #waiting = signal<readonly Plant[]>([]);
  readonly #gone = computed(() => this.plants.filter((plant) => plant.goneBecause).length);
  readonly #loaded = signal<Pick<Page, "next"> | undefined>();
  /** Why the last page failed to load. */
  readonly error = signal<unknown>();

  constructor(readonly query: Query) {
    this.#hasWords = query.q === undefined ? () => true : createMatcher(query.q);
  }

  /** A new array after every change. */
  get plants(): readonly ListedPlant[] {
    return this.#plants.value;
  }

  /** What others added where it would move what is in view. */
  get waiting(): readonly Plant[] {
    return this.#waiting.value;
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
    return this.plants.length - this.#gone.value + this.waiting.length;
  }

  /** Whether it has nothing that waits, and no row that stays only while it's in view. */
  get isSettled(): boolean {
    return this.waiting.length === 0 && this.#gone.value === 0;
  }

  find(id: bigint): ListedPlant | undefined {
    return this.plants.find((plant) => plant.id === id);
  }

  /** Plants already here stay as they are. */
  addPage({ plants, next }: Page): void {
    const known = new Set(this.plants.map(({ id }) => id));
    batch(() => {
      this.#show([...this.plants, ...plants.filter(({ id }) => !known.has(id))]);
      this.#loaded.value = { next };
    });
  }

  /** Adds or updates plants, except where a later page will bring them, and removes others. */
  put(plants: readonly Plant[], gone: readonly Plant[] = []): void {
    const ids = new Set([...plants, ...gone].map(({ id }) => id));
    const isOther = (plant: ListedPlant) => !ids.has(plant.id) && !plant.goneBecause;
    batch(() => {
      this.#show([
        ...this.plants.filter(isOther),
        ...plants.filter((plant) => this.#belongs(plant)),
      ]);
      this.#waiting.value = this.waiting.filter(isOther);
    });
  }

  /**
   * Applies events. Plants change in place. If one leaves the list, its row stays while it's in
   * view. New plants wait, unless they belong below everything in view. Returns the ids of plants
   * that changed or appeared.
   */
  follow(events: readonly PlantEvent[], view: View): bigint[] {
    const latest = new Map(events.map((event) => [event.plant.id, event]));
    const fresh: bigint[] = [];
    const plants = this.plants.flatMap((plant, index) => {
      const event = latest.get(plant.id);
      latest.delete(plant.id);
      const now = event ? this.#toListed(plant, event) : plant;
      if (now !== plant) fresh.push(plant.id);
      return now.goneBecause && (index < view.first || index > view.last) ? [] : now;
    });
    const added = [...latest.values()]
      .filter(({ type, plant }) => type !== "plant.deleted" && this.#belongs(plant))
      .map(({ plant }) => plant);
    const others = [...this.waiting.filter(({ id }) => !latest.has(id)), ...added];
    const end = plants.at(-1);
    const isEndInView = view.last >= plants.length;
    const { below = [], waiting = [] } = Object.groupBy(this.#sort(others), ({ id }) =>
      isEndInView && (!end || this.isBefore(end.id, id)) ? "below" : "waiting",
    );
    batch(() => {
      this.#plants.value = [...plants, ...below];
      this.#waiting.value = waiting;
    });
    return [...fresh, ...below.map(({ id }) => id)];
  }

  /** Shows the waiting plants, and returns their ids in the order of the list. */
  admit(): bigint[] {
    const { waiting } = this;
    batch(() => {
      this.#show([...this.plants, ...waiting]);
      this.#waiting.value = [];
    });
    return waiting.map(({ id }) => id);
  }

  /** Whether `a` comes before `b` in this list. */
  isBefore(a: bigint, b: bigint): boolean {
    return this.query.order === "desc" ? a > b : a < b;
  }

  /** Whether the plant is in the list, and not on a later page. */
  #belongs(plant: Plant): boolean {
    const { next } = this;
    if (!this.isLoaded) return false;
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

  #show(plants: ListedPlant[]): void {
    this.#plants.value = this.#sort(plants);
  }

  #sort<Item extends Plant>(plants: Item[]): Item[] {
    return plants.sort((a, b) => (this.isBefore(a.id, b.id) ? -1 : 1));
  }
}
