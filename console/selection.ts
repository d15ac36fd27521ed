/** Which plants are selected. */
import { computed, signal } from "@preact/signals";
import type { Plant } from "./api.ts";
import type { ListedPlant, PlantList } from "./plant-list.ts";

export class Selection {
  /** Whether rows are checkboxes now. */
  readonly isOn = signal(false);
  /** As they were when somebody selected them. */
  readonly plants = signal<ReadonlyMap<bigint, Plant>>(new Map());
  readonly size = computed(() => this.plants.value.size);
  /** Where a range starts. */
  #anchor: bigint | undefined;

  has({ id }: Pick<Plant, "id">): boolean {
    return this.plants.value.has(id);
  }

  /** Starts or stops selecting. */
  toggle(): void {
    this.isOn.value = !this.isOn.value;
    this.clear();
  }

  clear(): void {
    this.plants.value = new Map();
    this.#anchor = undefined;
  }

  /** Selects or deselects a plant, or every plant from the last one to this. */
  togglePlant(plants: readonly ListedPlant[], index: number, isRange: boolean): void {
    const plant = plants[index];
    if (!plant) return;
    const from = isRange ? plants.findIndex(({ id }) => id === this.#anchor) : -1;
    const anchor = plants[from];
    const isSelected = anchor ? this.has(anchor) : !this.has(plant);
    this.#set(plants.slice(...toRange(anchor ? from : index, index)), isSelected);
    this.#anchor = plant.id;
  }

  /** Selects from one row to the next, as Shift and an arrow key do. */
  extend(plants: readonly ListedPlant[], from: number, to: number): void {
    this.#set(plants.slice(...toRange(from, to)), true);
    this.#anchor = plants[to]?.id;
  }

  drop(plants: readonly Pick<Plant, "id">[]): void {
    this.#set(plants as readonly Plant[], false);
  }

  /** Selects every plant of a list, all of which the page has shown. */
  selectAll(list: PlantList): void {
    list.admit();
    this.#set(list.plants, true);
  }

  /** Whether every plant of a list is selected. */
  isAll({ isComplete, plants, waiting }: PlantList): boolean {
    const isEach = plants.every((plant) => plant.goneBecause || this.has(plant));
    return isComplete && isEach && waiting.length === 0 && this.size.value > 0;
  }

  #set(plants: readonly ListedPlant[], isSelected: boolean): void {
    const selected = new Map(this.plants.value);
    for (const plant of plants) {
      if (!isSelected) selected.delete(plant.id);
      else if (!plant.goneBecause) selected.set(plant.id, plant);
    }
    this.plants.value = selected;
  }
}

function toRange(a: number, b: number): [start: number, end: number] {
  return [Math.min(a, b), Math.max(a, b) + 1];
}
