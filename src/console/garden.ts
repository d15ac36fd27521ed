/** The plants loaded so far, by id: all plants or those of one tag. */
import type { Page, Plant } from "./api.ts";

interface Entry {
  readonly plant: Plant;
  /** What a filter searches: without case and accents. */
  readonly searched: string;
}

export type TagCount = readonly [tag: string, plants: number];

export class Garden {
  /** Only plants with this tag; any tag if absent. */
  readonly tag: string | undefined;
  /** The id that the next page starts after; absent before the first page and after the last. */
  next: bigint | undefined;
  /** How many plants the service has; unknown for one tag. */
  stored: number | undefined;
  isLoading = false;
  /** Why the last page didn't come. */
  loadError: unknown;
  #entries: Entry[] = [];
  readonly #byId = new Map<bigint, Entry>();
  /** Ids that a page may still bring, because it was read before the plant was deleted. */
  readonly #removed: Set<bigint>;
  #tagCounts: readonly TagCount[] | undefined;

  private constructor(tag: string | undefined, removed: Set<bigint>) {
    this.tag = tag;
    this.#removed = removed;
  }

  /** Without the plants with these ids, which are about to be deleted. */
  static ofAll(removed: Iterable<bigint> = []): Garden {
    return new Garden(undefined, new Set(removed));
  }

  /** Empty, but it knows what was removed here. */
  ofTag(tag: string): Garden {
    return new Garden(tag, this.#removed);
  }

  get size(): number {
    return this.#entries.length;
  }

  /** How many plants there are; absent if only those loaded were counted, and there are more. */
  get total(): number | undefined {
    return this.next === undefined ? this.size : this.stored;
  }

  /** Plants already here stay as they are, and removed ones stay away. */
  addPage({ plants, next }: Page): void {
    this.#add(plants);
    this.next = next;
  }

  #add(plants: readonly Plant[]): void {
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
    this.#add(plants.filter(({ tag }) => this.tag === undefined || tag === this.tag));
  }

  remove(id: bigint): void {
    this.#removed.add(id);
    if (!this.#byId.delete(id)) return;
    this.#tagCounts = undefined;
    this.#entries = this.#entries.filter(({ plant }) => plant.id !== id);
  }

  isRemoved(id: bigint): boolean {
    return this.#removed.has(id);
  }

  /** Plants that have every word of the text in their name, tag or id. */
  select(text: string): Plant[] {
    const words = fold(text).split(/\s+/).filter(Boolean);
    const selected: Plant[] = [];
    for (const { plant, searched } of this.#entries) {
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
