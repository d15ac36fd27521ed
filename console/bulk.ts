/** What is done to all selected plants together: deleting them, and changing their tag. */
import { computed, signal } from "@preact/signals";
import { renderCount } from "../client/files/renderer.ts";
import {
  type Api,
  changedAtOnce,
  describeError,
  isSame,
  type Plant,
  pageSize,
  pageSizeMax,
} from "./api.ts";
import type { Garden } from "./garden.ts";
import { confirm, type Message, message, notify } from "./message.ts";
import type { UndoStep } from "./undo.ts";
import { countPlants, describePlants, isFiltered } from "./words.ts";

/** Changing more than this many plants needs a confirmation. */
const unconfirmedMax = 100;
const undoable = "You can undo this until you dismiss the message that follows, or leave the page.";

export class Bulk {
  readonly #api: Api;
  readonly #garden: Garden;
  readonly isBusy = signal(false);
  /** Whether every plant of the list is selected. */
  readonly isAll = computed(() => this.#garden.selection.isAll(this.#garden.list.value));

  constructor(api: Api, garden: Garden) {
    this.#api = api;
    this.#garden = garden;
  }

  /** What the button that selects all plants says. */
  get selectLabel(): string {
    const { list, summary } = this.#garden;
    if (this.isAll.value) return "Select none";
    const { tag, q } = list.value.query;
    const total = countPlants(list.value, summary.value);
    const all = total === undefined ? "all" : `all ${renderCount(total)}`;
    const tagged = tag === "" ? "without a tag" : "with this tag";
    return `Select ${all} ${q !== undefined ? "that match" : tag === undefined ? "plants" : tagged}`;
  }

  /** Loads the list first, so that nobody deletes plants that the page has never shown. */
  async toggleAll(): Promise<void> {
    const { selection, list } = this.#garden;
    const shown = list.value;
    const isAll = this.isAll.value;
    selection.clear();
    if (isAll) return;
    await this.#work(() => this.#garden.loadAll());
    if (selection.isOn.value && shown.isComplete && shown === list.value)
      selection.selectAll(shown);
  }

  async delete(): Promise<void> {
    if (!(await this.#confirm("Delete", undoable))) return;
    const deleted: Plant[] = [];
    await this.#work(async () => {
      try {
        const plants = await this.#read();
        // One request at a time, so that what was deleted before a failure can still be undone.
        for (const some of slice(plants)) {
          const results = await this.#api.deleteMany(some.map(({ id }) => id));
          deleted.push(...some.filter((_, index) => results[index]?.status === 204));
        }
        this.#garden.selection.toggle();
      } catch (error) {
        this.#fail(message`Some plants may not have been deleted. ${describeError(error)}`);
      }
    });
    this.#garden.showDeleted(deleted);
  }

  /** Gives all selected plants the same tag. Returns false if nothing was changed. */
  async changeTag(tag: string): Promise<boolean> {
    const plants = [...this.#garden.selection.plants.value.values()];
    const others = plants.filter((plant) => plant.tag !== tag);
    const what = tag === "" ? "Remove the tag of" : "Change the tag of";
    if (!(await this.#confirm(what, undoable))) return false;
    const changed: Plant[] = [];
    let isWhole = false;
    await this.#work(async () => {
      try {
        await this.#setTag(others, tag, changed);
        this.#reportOthers(others.length - changed.length);
        this.#garden.selection.toggle();
        isWhole = true;
      } catch (error) {
        this.#fail(message`Some tags may not have been changed. ${describeError(error)}`);
      }
    });
    if (isWhole && others.length === 0) notify(["All of these plants have this tag already."]);
    if (changed.length > 0) this.#garden.undo.add(this.#makeUndo(changed, tag));
    return isWhole;
  }

  /** Adds the plants to `changed`, as they were, as soon as they have the tag. */
  async #setTag(plants: readonly Plant[], tag: string, changed: Plant[]): Promise<void> {
    for (const some of slice(plants)) {
      const ids = some.map(({ id }) => id);
      const results = await this.#api.updateMany(ids, { tag });
      const found = some.filter((_, index) => results[index]?.status === 200);
      changed.push(...found);
      this.#garden.showTagged(found.map((plant) => ({ ...plant, tag })));
    }
  }

  /** Gives plants their old tags back, except where somebody else has changed the tag since. */
  #makeUndo(plants: readonly Plant[], tag: string): UndoStep {
    const whose =
      plants.length === 1
        ? message`${describePlants(plants)} has`
        : [`${renderCount(plants.length, "plant")} have`];
    const what = tag === "" ? ["no tag"] : message`the tag “${tag}”`;
    return {
      text: message`${whose} ${what} now.`,
      run: async () => {
        const still = new Set<bigint>();
        for await (const page of this.#api.listPages({ tag }))
          for (const { id } of page) still.add(id);
        const mine = plants.filter(({ id }) => still.has(id));
        const restored: Plant[] = [];
        for (const [old, some] of Map.groupBy(mine, (plant) => plant.tag)) {
          await this.#setTag(some, old, restored);
        }
        const count = renderCount(restored.length, "plant");
        const have = restored.length === 1 ? "has its old tag" : "have their old tags";
        return { isWhole: restored.length === plants.length, text: [`${count} ${have} again.`] };
      },
    };
  }

  async #work(work: () => Promise<void>): Promise<void> {
    if (this.isBusy.value) return;
    this.isBusy.value = true;
    await work();
    this.isBusy.value = false;
  }

  #fail(text: Message): void {
    notify(text, "trouble");
    void this.#garden.refresh();
  }

  async #confirm(what: string, note: string): Promise<boolean> {
    const { list, selection } = this.#garden;
    const isWhole = this.isAll.value && !isFiltered(list.value.query);
    const size = selection.size.value;
    if (size <= unconfirmedMax && !isWhole) return true;
    const plants = renderCount(size, "plant");
    const title = isWhole ? `${what} the whole garden?` : `${what} ${plants}?`;
    return confirm(title, note, `${what} ${plants}`);
  }

  /** The selected plants, except for the ones that somebody else has changed since. */
  async #read(): Promise<Plant[]> {
    const list = this.#garden.list.value;
    const selected = this.#garden.selection.plants.value;
    const isSelected = ({ id }: Plant) => selected.has(id);
    const before = list.plants[list.plants.findIndex(isSelected) - 1]?.id;
    const last = list.plants.findLast(isSelected)?.id;
    const size = selected.size > pageSize ? pageSizeMax : pageSize;
    const found: Plant[] = [];
    for await (const page of this.#api.listPages(list.query, { after: before, pageSize: size })) {
      for (const plant of page) {
        const known = selected.get(plant.id);
        if (known && isSame(plant, known)) found.push(plant);
      }
      const end = page.at(-1)?.id;
      if (end !== undefined && (last === undefined || !list.isBefore(end, last))) break;
    }
    this.#reportOthers(selected.size - found.length);
    return found;
  }

  #reportOthers(count: number): void {
    if (count === 0) return;
    const which = `${renderCount(count)} of these plants`;
    const what = count === 1 ? "it" : "them";
    notify([`Somebody else changed or deleted ${which}. Nothing was done to ${what}.`]);
    void this.#garden.refresh();
  }
}

function slice(plants: readonly Plant[]): (readonly Plant[])[] {
  const count = Math.ceil(plants.length / changedAtOnce);
  return Array.from({ length: count }, (_, index) =>
    plants.slice(index * changedAtOnce, (index + 1) * changedAtOnce),
  );
}
