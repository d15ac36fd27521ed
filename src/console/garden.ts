/**
 * The plants that were loaded, in the order of their ids. It knows neither the page nor the
 * network.
 */
import type { Plant } from "./api.ts";

interface Entry {
  readonly plant: Plant;
  readonly order: bigint;
  /** What a filter looks into: without case and accents. */
  readonly searched: string;
}

export interface Filter {
  readonly text: string;
  /** Only plants with this tag; absent: with any. */
  readonly tag: string | undefined;
}

export type TagCount = readonly [tag: string, plants: number];

export class Garden {
  #entries: Entry[] = [];
  readonly #byId = new Map<string, Entry>();
  /** Ids that a page may still bring, because it was read before the plant was deleted. */
  readonly #removed = new Set<string>();
  #tagCounts: readonly TagCount[] | undefined;

  get size(): number {
    return this.#entries.length;
  }

  /**
   * Puts the plants of a page in their places. One whose id is there already is left as it is, and
   * one that was removed stays away.
   */
  add(plants: readonly Plant[]): void {
    this.#tagCounts = undefined;
    const last = this.#entries.at(-1)?.order;
    const added: Entry[] = [];
    for (const plant of plants) {
      if (this.#byId.has(plant.id) || this.#removed.has(plant.id)) continue;
      const searched = fold(`${plant.name}\n${plant.tag}\n${plant.id}`);
      const entry = { plant, order: BigInt(plant.id), searched };
      this.#byId.set(plant.id, entry);
      added.push(entry);
    }
    this.#entries.push(...added);
    // A page of a list comes in order and behind what is there; only a new plant may not.
    const isInOrder = added.every(
      ({ order }, index) => order > (added[index - 1]?.order ?? last ?? order - 1n),
    );
    if (!isInOrder) this.#entries.sort((a, b) => (a.order < b.order ? -1 : 1));
  }

  /** Puts plants in their places that are surely there, also where others had their ids. */
  put(plants: readonly Plant[]): void {
    for (const { id } of plants) {
      this.remove(id);
      this.#removed.delete(id);
    }
    this.add(plants);
  }

  remove(id: string): void {
    this.#removed.add(id);
    if (!this.#byId.delete(id)) return;
    this.#tagCounts = undefined;
    this.#entries = this.#entries.filter(({ plant }) => plant.id !== id);
  }

  /** Plants that hold every word of the text in their name, tag or id. */
  select({ text, tag }: Filter): Plant[] {
    const words = fold(text).split(/\s+/).filter(Boolean);
    const selected: Plant[] = [];
    for (const { plant, searched } of this.#entries) {
      if (tag !== undefined && plant.tag !== tag) continue;
      if (words.every((word) => searched.includes(word))) selected.push(plant);
    }
    return selected;
  }

  /**
   * How many plants each tag has, the most frequent first; the same array until a plant changes.
   */
  countTags(): readonly TagCount[] {
    if (this.#tagCounts) return this.#tagCounts;
    const counts = new Map<string, number>();
    for (const { plant } of this.#entries) counts.set(plant.tag, (counts.get(plant.tag) ?? 0) + 1);
    this.#tagCounts = [...counts].sort(
      ([tagA, a], [tagB, b]) => b - a || collator.compare(tagA, tagB),
    );
    return this.#tagCounts;
  }
}

/** `bed 2` before `bed 11`. */
const collator = new Intl.Collator("en", { numeric: true });

function fold(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
}
