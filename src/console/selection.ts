/** Which plants of a list are selected: some of them, or all but some. */
import type { Plant } from "./api.ts";

export class Selection {
  #isOn = false;
  #isAll = false;
  /** The ids that are selected; with `isAll`, those that aren't. */
  readonly #marked = new Set<bigint>();
  /** Where a range starts. */
  #anchor: bigint | undefined;

  /** Whether people are selecting at all. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** Whether plants that aren't loaded yet are selected, too. */
  get isAll(): boolean {
    return this.#isAll;
  }

  setOn(isOn: boolean): void {
    this.#isOn = isOn;
    this.setAll(false);
  }

  setAll(isAll: boolean): void {
    this.#isAll = isAll;
    this.#anchor = undefined;
    this.#marked.clear();
  }

  has({ id }: Pick<Plant, "id">): boolean {
    return this.#isAll !== this.#marked.has(id);
  }

  /** What `has` says now, whatever is selected later. */
  freeze(): (plant: Pick<Plant, "id">) => boolean {
    const isAll = this.#isAll;
    const marked = new Set(this.#marked);
    return ({ id }) => isAll !== marked.has(id);
  }

  /** How many are selected of so many; absent if that isn't known. */
  count(total: number | undefined): number | undefined {
    if (!this.#isAll) return this.#marked.size;
    return total === undefined ? undefined : total - this.#marked.size;
  }

  /** The plant at this index, or everything between it and the one before it, which it follows. */
  toggle(plants: readonly Plant[], index: number, isRange: boolean): void {
    const from = isRange ? plants.findIndex(({ id }) => id === this.#anchor) : -1;
    const anchor = plants[from];
    const plant = plants[index];
    if (!plant) return;
    const isSelected = anchor ? this.has(anchor) : !this.has(plant);
    const start = anchor ? Math.min(from, index) : index;
    for (const each of plants.slice(start, Math.max(from, index) + 1)) this.#set(each, isSelected);
    this.#anchor = plant.id;
  }

  /** They are gone, or no longer what was selected. */
  drop(plants: readonly Pick<Plant, "id">[]): void {
    for (const plant of plants) this.#set(plant, false);
  }

  #set({ id }: Pick<Plant, "id">, isSelected: boolean): void {
    if (isSelected === this.#isAll) this.#marked.delete(id);
    else this.#marked.add(id);
  }
}
