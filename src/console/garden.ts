/** The plants loaded so far, by id, and how to filter and count them. */
import type { Plant } from "./api.ts";

interface Entry {
  readonly plant: Plant;
  /** What a filter searches: without case and accents. */
  readonly searched: string;
}

export interface Filter {
  readonly text: string;
  /** Only plants with this tag; any tag if absent. */
  readonly tag: string | undefined;
}

export type TagCount = readonly [tag: string, plants: number];

export class Garden {
  #entries: Entry[] = [];
  readonly #byId = new Map<bigint, Entry>();
  /** Ids that a page may still bring, because it was read before the plant was deleted. */
  readonly #removed = new Set<bigint>();
  #tagCounts: readonly TagCount[] | undefined;

  get size(): number {
    return this.#entries.length;
  }

  /** Adds a page. Plants already here stay as they are, and removed ones stay away. */
  add(plants: readonly Plant[]): void {
    this.#tagCounts = undefined;
    const last = this.#entries.at(-1)?.plant.id;
    const added: Entry[] = [];
    for (const plant of plants) {
      if (this.#byId.has(plant.id) || this.#removed.has(plant.id)) continue;
      const entry = { plant, searched: fold(`${plant.name}\n${plant.tag}\n${plant.id}`) };
      this.#byId.set(plant.id, entry);
      added.push(entry);
    }
    this.#entries.push(...added);
    // Pages arrive in order; only a new plant may belong further up.
    const isInOrder = added.every(({ plant }, index) => {
      const before = added[index - 1]?.plant.id ?? last;
      return before === undefined || plant.id > before;
    });
    if (!isInOrder) this.#entries.sort((a, b) => (a.plant.id < b.plant.id ? -1 : 1));
  }

  /** Adds plants that certainly exist, replacing others with the same ids. */
  put(plants: readonly Plant[]): void {
    for (const { id } of plants) {
      this.remove(id);
      this.#removed.delete(id);
    }
    this.add(plants);
  }

  remove(id: bigint): void {
    this.#removed.add(id);
    if (!this.#byId.delete(id)) return;
    this.#tagCounts = undefined;
    this.#entries = this.#entries.filter(({ plant }) => plant.id !== id);
  }

  /** Plants that have every word of the text in their name, tag or id. */
  select({ text, tag }: Filter): Plant[] {
    const words = fold(text).split(/\s+/).filter(Boolean);
    const selected: Plant[] = [];
    for (const { plant, searched } of this.#entries) {
      if (tag !== undefined && plant.tag !== tag) continue;
      if (words.every((word) => searched.includes(word))) selected.push(plant);
    }
    return selected;
  }

  /** How many plants each tag has, most frequent first; the same array until a plant changes. */
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
