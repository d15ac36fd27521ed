/** Which plants are selected, and what is done to all of them: deleting, and changing their tag. */
import { computed, signal } from "@preact/signals";
import { renderCount } from "../src/shared/text.ts";
import { isRefused, isSame, type Plant, pageSize, pageSizeMax } from "./api.ts";
import type { PlantChange } from "./counts.ts";
import type { Garden } from "./garden.ts";
import { confirm, message, notify, offerUndo, Task, warn } from "./message.ts";
import type { ListedPlant } from "./plant-list.ts";
import { countPlants, describePlants, isFiltered } from "./words.ts";

/** Changing more than this many plants needs a confirmation. */
const unconfirmedMax = 1_000;
const undoable = "You can undo it for as long as this page is open.";
/** How many plants the service changes or deletes in one request. */
const changedAtOnce = 10_000;

/** What became of plants that were to be changed or deleted. */
class Change {
  readonly done: Plant[] = [];
  /** Of a request without a response. */
  readonly unknown: Plant[] = [];
}

export class Selection {
  /** As they were when somebody selected them. */
  readonly plants = signal<ReadonlyMap<bigint, Plant>>(new Map());
  readonly size = computed(() => this.plants.value.size);
  /** Whether every plant of the list is selected. */
  readonly isAll = computed(() => {
    const { isComplete, plants, waiting } = this.garden.list.value;
    const isEach = plants.every((plant) => plant.goneBecause || this.has(plant));
    return isComplete && isEach && waiting.length === 0 && this.size.value > 0;
  });
  readonly changing = new Task();
  /** Where a range starts. */
  #anchor: bigint | undefined;

  constructor(readonly garden: Garden) {
    // Another list has other plants. The same ones in another order stay selected.
    const shown = computed(() => {
      const { tag, q } = garden.list.value.query;
      return JSON.stringify([tag, q]);
    });
    shown.subscribe(() => this.clear());
    garden.onChanged = (changes) => this.#follow(changes);
  }

  /** After changes that this page made. */
  #follow(changes: readonly PlantChange[]): void {
    const selected = new Map(this.plants.value);
    for (const { before, after } of changes) {
      if (!before || !selected.has(before.id)) continue;
      if (after) selected.set(after.id, after);
      else selected.delete(before.id);
    }
    this.plants.value = selected;
  }

  /** The selected plants, as the page shows them now. */
  listShown(): readonly Plant[] {
    const list = this.garden.list.value;
    return [...this.plants.value.values()].map((plant) => list.find(plant.id) ?? plant);
  }

  has({ id }: Pick<Plant, "id">): boolean {
    return this.plants.value.has(id);
  }

  clear(): void {
    this.plants.value = new Map();
    this.#anchor = undefined;
  }

  /** Selects or deselects a plant, or every plant from the last one to this. */
  togglePlant(index: number, isRange: boolean): void {
    const { plants } = this.garden.list.value;
    const plant = plants[index];
    if (!plant) return;
    const from = isRange ? plants.findIndex(({ id }) => id === this.#anchor) : -1;
    const anchor = plants[from];
    const isSelected = anchor ? this.has(anchor) : !this.has(plant);
    this.#setRange(anchor ? from : index, index, isSelected);
  }

  /** Selects a plant and the one next to it. */
  extend(from: number, to: number): void {
    this.#setRange(from, to, true);
  }

  #setRange(from: number, to: number, isSelected: boolean): void {
    const { plants } = this.garden.list.value;
    this.#set(plants.slice(Math.min(from, to), Math.max(from, to) + 1), isSelected);
    this.#anchor = plants[to]?.id;
  }

  #set(plants: readonly ListedPlant[], isSelected: boolean): void {
    const selected = new Map(this.plants.value);
    for (const plant of plants) {
      if (!isSelected) selected.delete(plant.id);
      else if (!plant.goneBecause) selected.set(plant.id, plant);
    }
    this.plants.value = selected;
  }

  /** What the box that selects all plants says. */
  get allLabel(): string {
    if (this.isAll.value) return "Select none";
    const { list, summary } = this.garden;
    const { tag, q } = list.value.query;
    const total = countPlants(list.value, summary.value);
    const all = total === undefined ? "all" : `all ${renderCount(total)}`;
    const tagged = tag === "" ? "without a tag" : "with this tag";
    return `Select ${all} ${q !== undefined ? "that match" : tag === undefined ? "plants" : tagged}`;
  }

  /** Loads the list first, so that nobody deletes plants that the page has never shown. */
  async toggleAll(): Promise<void> {
    const list = this.garden.list.value;
    const isAll = this.isAll.value;
    this.clear();
    if (isAll) return;
    const isShown = () => list === this.garden.list.value;
    await this.changing.run(() => this.garden.loadAll(isShown));
    if (!isShown() || !list.isComplete) return;
    list.admit();
    this.#set(list.plants, true);
  }

  async delete(): Promise<void> {
    const { api } = this.garden;
    const selected = [...this.plants.value.values()];
    const { done, unknown } = await this.#change("Delete", selected, async (change) =>
      this.#send(await this.#readUnchanged(), (ids) => api.deleteMany(ids), change),
    );
    this.garden.showDeleted(done, unknown);
  }

  /** Gives all selected plants the same tag. */
  async changeTag(tag: string): Promise<void> {
    // Somebody else may have changed tags since they were selected.
    const others = this.listShown().filter((plant) => plant.tag !== tag);
    if (others.length === 0) return notify("All of these plants have this tag already.");
    const verb = tag === "" ? "Remove the tag of" : "Move";
    const { done, unknown } = await this.#change(verb, others, (change) =>
      this.#setTag(others, tag, change),
    );
    const changed = [...done, ...unknown];
    if (changed.length === 0) return;
    this.garden.showTagged(done.map((before) => ({ before, after: { ...before, tag } })));
    const have = changed.length === 1 ? "has" : "have";
    const what = tag === "" ? "no tag" : message`the tag “${tag}”`;
    offerUndo(message`${describePlants(done, unknown)} ${[have]} ${[what]} now.`, async () => {
      const restored = await this.#restoreTags(changed, tag);
      const count = renderCount(restored.length, "plant");
      return `${count} ${restored.length === 1 ? "has its old tag" : "have their old tags"} again.`;
    });
  }

  /** Gives plants their old tags back, except where somebody else has changed the tag since. */
  async #restoreTags(plants: readonly Plant[], tag: string): Promise<Plant[]> {
    const still = new Set<bigint>();
    for await (const { id } of this.garden.api.list({ tag })) still.add(id);
    const restored = new Change();
    const mine = plants.filter(({ id }) => still.has(id));
    for (const [old, some] of Map.groupBy(mine, (plant) => plant.tag)) {
      await this.#setTag(some, old, restored);
    }
    this.garden.showTagged(restored.done.map((old) => ({ before: { ...old, tag }, after: old })));
    return restored.done;
  }

  async #setTag(plants: readonly Plant[], tag: string, change: Change): Promise<void> {
    await this.#send(plants, (ids) => this.garden.api.updateMany(ids, { tag }), change);
  }

  /** One request at a time, so that what was done before a failure can still be undone. */
  async #send(
    plants: readonly Plant[],
    send: (ids: bigint[]) => Promise<readonly { readonly status: number }[]>,
    { done, unknown }: Change,
  ): Promise<void> {
    for (let at = 0; at < plants.length; at += changedAtOnce) {
      const some = plants.slice(at, at + changedAtOnce);
      const results = await send(some.map(({ id }) => id)).catch((error) => {
        if (!isRefused(error)) unknown.push(...some);
        throw error;
      });
      done.push(...some.filter((_, index) => results[index]?.status !== 404));
    }
  }

  /** Asks before something large, and ends the selection unless it fails. */
  async #change(
    verb: string,
    plants: readonly Plant[],
    work: (change: Change) => Promise<void>,
  ): Promise<Change> {
    const change = new Change();
    const { done } = change;
    if (!(await this.#confirm(verb, plants.length))) return change;
    await this.changing.run(async () => {
      try {
        await work(change);
        this.clear();
        const missed = plants.length - done.length;
        if (missed === 0) return;
        const which = `${renderCount(missed)} of these plants`;
        const them = missed === 1 ? "it" : "them";
        notify(`Somebody else changed or deleted ${which}. Nothing was done to ${them}.`);
      } catch (error) {
        warn("Some plants may not have been changed or deleted.", error);
      }
      if (done.length < plants.length) void this.garden.refresh();
    });
    return change;
  }

  async #confirm(verb: string, count: number): Promise<boolean> {
    if (count <= unconfirmedMax) return true;
    const plants = renderCount(count, "plant");
    const isEach = this.isAll.value && count === this.size.value;
    const isWhole = isEach && !isFiltered(this.garden.list.value.query);
    const title = isWhole ? `${verb} the whole garden?` : `${verb} ${plants}?`;
    return confirm(title, undoable, `${verb} ${plants}`);
  }

  /** The selected plants, except for the ones that somebody else has changed since. */
  async #readUnchanged(): Promise<Plant[]> {
    const { tag, q } = this.garden.list.value.query;
    const selected = this.plants.value;
    const ids = [...selected.keys()].sort((a, b) => (a < b ? -1 : 1));
    const [first] = ids;
    const last = ids.at(-1);
    if (first === undefined || last === undefined) return [];
    const after = first > -(2n ** 63n) ? first - 1n : undefined;
    const limit = selected.size > pageSize ? pageSizeMax : pageSize;
    const found = new Map<bigint, Plant>();
    for await (const page of this.garden.api.listPages({ tag, q }, { after, limit })) {
      for (const plant of page) {
        const known = selected.get(plant.id);
        if (known && isSame(plant, known)) found.set(plant.id, plant);
      }
      const end = page.at(-1)?.id;
      if (end !== undefined && end >= last) break;
    }
    return [...found.values()];
  }
}
