/**
 * The plants of a list that are loaded so far, in its order. Pages extend it. What this page
 * changes goes through `put`. Events go through `follow`, which moves nothing that somebody is
 * looking at. A row keeps its place until the list is loaded again, even if its name changes.
 */
import { batch, computed, type Signal, signal } from "@preact/signals";
import { createMatcher } from "../src/domain/search.ts";
import { isSame, type Page, type Plant, type PlantEvent, type Query } from "./api.ts";
import { makeCompare, type Order, type SortedQuery, toOrder, toRequest } from "./order.ts";

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
  readonly #byId = computed(() => new Map(this.plants.map((plant) => [plant.id, plant])));
  readonly #gone = computed(() => this.plants.filter((plant) => plant.goneBecause).length);
  readonly #loaded = signal<Pick<Page, "next"> | undefined>();
  readonly #order: Signal<Order>;
  /** What the service is asked for. It has the plants by id. */
  readonly request: Query;
  /** Why the last page failed to load. */
  readonly error = signal<unknown>();

  constructor(readonly query: SortedQuery) {
    this.request = toRequest(query);
    this.#order = signal({ by: "id", isDown: this.request.order === "desc" });
    this.#hasWords = query.q === undefined ? () => true : createMatcher(query.q);
  }

  /** By id, until the list is sorted. */
  get order(): Order {
    return this.#order.value;
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
    return this.#byId.value.get(id);
  }

  /** Plants already here stay as they are. */
  addPage({ plants, next }: Page): void {
    const known = new Set(this.plants.map(({ id }) => id));
    const added = plants.filter(({ id }) => !known.has(id) && known.add(id));
    batch(() => {
      this.#plants.value = this.#insert(this.plants, added);
      this.#loaded.value = { next };
    });
  }

  /** Brings a complete list into the order that its query asks for. */
  sort(): void {
    const order = toOrder(this.query);
    batch(() => {
      this.#order.value = order;
      this.#plants.value = this.plants.toSorted(makeCompare(order));
    });
  }

  /** Adds or updates plants, except where a later page will bring them, and removes others. */
  put(plants: readonly Plant[], gone: readonly Plant[] = []): void {
    const added = new Map(plants.map((plant) => [plant.id, plant]));
    const changed = new Set([...plants, ...gone].map(({ id }) => id));
    const kept = this.plants.flatMap((plant): ListedPlant[] => {
      const now = added.get(plant.id);
      added.delete(plant.id);
      if (now) return this.#belongs(now) ? [now] : [];
      return changed.has(plant.id) || plant.goneBecause ? [] : [plant];
    });
    const others = [...added.values()].filter((plant) => this.#belongs(plant));
    batch(() => {
      this.#plants.value = this.#insert(kept, others);
      this.#waiting.value = this.waiting.filter(({ id }) => !changed.has(id));
    });
  }

  /**
   * Applies events. Plants change in place. If one leaves the list, its row stays while it's in
   * view. New plants wait, unless they belong below everything in view. Returns the ids of plants
   * that changed or appeared.
   */
  follow(events: readonly Pick<PlantEvent, "type" | "plant">[], view: View): bigint[] {
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
    const sorted = others.sort(makeCompare(this.order));
    const { below = [], waiting = [] } = Object.groupBy(sorted, (plant) =>
      isEndInView && (!end || this.isBefore(end, plant)) ? "below" : "waiting",
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
      this.#plants.value = this.#insert(this.plants, waiting);
      this.#waiting.value = [];
    });
    return waiting.map(({ id }) => id);
  }

  /** Whether `a` comes before `b` in this list. */
  isBefore(a: Plant, b: Plant): boolean {
    return makeCompare(this.order)(a, b) < 0;
  }

  /** Whether the plant is in the list, and not on a later page. */
  #belongs(plant: Plant): boolean {
    const { next, order } = this;
    if (!this.isLoaded) return false;
    const isNear = next === undefined || (order.isDown ? plant.id >= next : plant.id <= next);
    return isNear && this.#matches(plant);
  }

  #matches(plant: Plant): boolean {
    const { tag, q } = this.query;
    const isFound = this.#hasWords(plant) || String(plant.id) === q;
    return isFound && (tag === undefined || plant.tag === tag);
  }

  #toListed(before: ListedPlant, { type, plant }: Pick<PlantEvent, "type" | "plant">): ListedPlant {
    if (type === "plant.deleted") return { ...plant, goneBecause: "deleted" };
    if (!this.#matches(plant)) return { ...plant, goneBecause: "changed" };
    return isSame(before, plant) && !before.goneBecause ? before : plant;
  }

  /** Puts new plants between the others, which keep their order. */
  #insert(plants: readonly ListedPlant[], added: readonly Plant[]): ListedPlant[] {
    const compare = makeCompare(this.order);
    const sorted = added.toSorted(compare);
    const [first] = sorted;
    const end = plants.at(-1);
    // Like every page of a list by id.
    if (!first || !end || compare(end, first) < 0) return [...plants, ...sorted];
    const rest = sorted.reverse();
    const merged: ListedPlant[] = [];
    for (const plant of plants) {
      for (let next = rest.at(-1); next && compare(next, plant) < 0; next = rest.at(-1)) {
        merged.push(next);
        rest.pop();
      }
      merged.push(plant);
    }
    return [...merged, ...rest.reverse()];
  }
}
