/**
 * The plants of a list that are loaded so far, in its order. Pages extend it. What this page
 * changes goes through `put` and `remove`, which can be repeated without harm. What others change
 * goes through `follow`, which moves nothing that somebody is looking at.
 */
import { isSame, type Page, type Plant, type PlantEvent, type Query } from "./api.ts";

/** A plant with `left` is no longer in the list: its row stays until it is out of view. */
export interface ListedPlant extends Plant {
  readonly left?: "deleted" | "changed" | undefined;
}

/** The rows in view, as indexes; `last` is past the end of the list if that end is in view. */
export interface View {
  readonly first: number;
  readonly last: number;
}

export class Garden {
  readonly query: Query;
  /** The id that the next page starts after; absent before the first page and after the last. */
  next: bigint | undefined;
  isLoaded = false;
  isLoading = false;
  /** Why the last page didn't come. */
  loadError: unknown;
  readonly #matches: (plant: Plant) => boolean;
  #plants: ListedPlant[] = [];
  /** What others have added where it would move what is in view. */
  readonly #waiting = new Map<bigint, Plant>();
  /** Ids that a page may still bring, because it was read before the plant was deleted. */
  readonly #removed = new Set<bigint>();

  /** `matches` decides which plants belong here. */
  constructor(query: Query, matches: (plant: Plant) => boolean) {
    this.query = query;
    this.#matches = matches;
  }

  /** Another array whenever something has changed. */
  get plants(): readonly ListedPlant[] {
    return this.#plants;
  }

  /** In the order of the list. */
  get waiting(): Plant[] {
    return this.#sort([...this.#waiting.values()]);
  }

  /** How many plants are known to be in the list, shown or waiting. */
  get size(): number {
    const left = this.#plants.filter((plant) => plant.left).length;
    return this.#plants.length - left + this.#waiting.size;
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
    this.#insert(plants.filter((plant) => this.#belongs(plant)));
  }

  remove(plants: readonly Pick<Plant, "id">[]): void {
    this.#take(plants);
    for (const { id } of plants) this.#removed.add(id);
  }

  /**
   * What others did. Plants change in place. Those that leave the list stay as long as they are in
   * view, and new ones wait, unless they go below everything that is in view. Returns the ids of
   * plants that were changed or added.
   */
  follow(events: readonly PlantEvent[], view: View): bigint[] {
    const latest = new Map(events.map((event) => [event.plant.id, event]));
    const fresh: bigint[] = [];
    this.#plants = this.#plants.flatMap((plant, index) => {
      const event = latest.get(plant.id);
      latest.delete(plant.id);
      const now = event ? toListed(plant, event, this.#matches) : plant;
      if (now !== plant) fresh.push(plant.id);
      return now.left && (index < view.first || index > view.last) ? [] : now;
    });
    for (const [id, { type, plant }] of latest) {
      if (type !== "plant.deleted" && this.#belongs(plant)) this.#waiting.set(id, plant);
      else this.#waiting.delete(id);
    }
    for (const { type, plant } of events) {
      if (type === "plant.deleted") this.#removed.add(plant.id);
      else this.#removed.delete(plant.id);
    }
    const end = this.#plants.at(-1);
    if (view.last < this.#plants.length) return fresh;
    return [...fresh, ...this.admit(({ id }) => !end || this.isBefore(end.id, id))];
  }

  /** Lists plants that wait, and returns their ids in the order of the list. */
  admit(isWanted: (plant: Plant) => boolean = () => true): bigint[] {
    const plants = this.waiting.filter(isWanted);
    for (const { id } of plants) this.#waiting.delete(id);
    this.#insert(plants);
    return plants.map(({ id }) => id);
  }

  /** Whether the first of two ids comes first in this list. */
  isBefore(a: bigint, b: bigint): boolean {
    return this.query.order === "desc" ? a > b : a < b;
  }

  /** Whether it is in the list, and not on a later page. */
  #belongs(plant: Plant): boolean {
    const { next } = this;
    const isNear = next === undefined || plant.id === next || this.isBefore(plant.id, next);
    return isNear && this.#matches(plant);
  }

  #take(plants: readonly Pick<Plant, "id">[]): void {
    const ids = new Set(plants.map(({ id }) => id));
    for (const id of ids) this.#waiting.delete(id);
    this.#plants = this.#plants.filter(({ id, left }) => !ids.has(id) && !left);
  }

  #insert(plants: readonly Plant[]): void {
    this.#plants = this.#sort([...this.#plants, ...plants]);
  }

  #sort(plants: Plant[]): Plant[] {
    return plants.sort((a, b) => (this.isBefore(a.id, b.id) ? -1 : 1));
  }
}

function toListed(
  before: ListedPlant,
  { type, plant }: PlantEvent,
  matches: (plant: Plant) => boolean,
): ListedPlant {
  if (type === "plant.deleted") return { ...plant, left: "deleted" };
  if (!matches(plant)) return { ...plant, left: "changed" };
  return isSame(before, plant) && !before.left ? before : plant;
}
