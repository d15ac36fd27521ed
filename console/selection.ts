/** Selecting plants, and deleting them together. */
import { renderCount } from "../client/files/renderer.ts";
import { describeError, isSame, type Plant, pageSize, pageSizeMax, type Summary } from "./api.ts";
import { confirm, find, message, notify, show, whileBusy } from "./elements.ts";
import { countPlants, isFiltered } from "./garden-words.ts";
import type { ListedPlant, PlantList } from "./plant-list.ts";
import { api } from "./session.ts";

/** How many plants the service deletes in one request. */
const deletedAtOnce = 10_000;
/** Deleting more than this many plants needs a confirmation. */
const unconfirmedMax = 100;

interface SelectionEvents {
  /** The list on the page. */
  readonly list: () => PlantList;
  /** Loads the rest of it. */
  readonly loadAll: () => Promise<void>;
  readonly onChange: () => void;
  readonly onDeleted: (plants: readonly Plant[]) => void;
  /** The list no longer matches what the service has. */
  readonly onStale: () => void;
}

export class Selection {
  readonly #events: SelectionEvents;
  readonly #opener = find("select");
  readonly #allButton = find<HTMLButtonElement>("select-all");
  readonly #deleteButton = find<HTMLButtonElement>("delete-selected");
  #isOn = false;
  /** As they were when somebody selected them. */
  readonly #plants = new Map<bigint, Plant>();
  /** Where a range starts. */
  #anchor: bigint | undefined;

  constructor(events: SelectionEvents) {
    this.#events = events;
    this.#opener.addEventListener("click", () => this.toggle());
    find("select-done").addEventListener("click", () => this.#close());
    for (const id of ["rows", "selection"]) {
      find(id).addEventListener("keydown", ({ key }) => key === "Escape" && this.#close());
    }
    this.#allButton.addEventListener("click", () => {
      void whileBusy(this.#allButton, () => this.#toggleAll());
    });
    this.#deleteButton.addEventListener("click", async () => {
      if (await this.#confirm()) void whileBusy(this.#deleteButton, () => this.#delete());
    });
  }

  /** Whether rows are checkboxes now. */
  get isOn(): boolean {
    return this.#isOn;
  }

  has({ id }: Plant): boolean {
    return this.#plants.has(id);
  }

  /** Starts or stops selecting. */
  toggle(): void {
    this.#isOn = !this.#isOn;
    this.clear();
    this.#events.onChange();
  }

  clear(): void {
    this.#plants.clear();
    this.#anchor = undefined;
  }

  /** Selects or deselects a plant, or every plant from the last one to this. */
  togglePlant(plants: readonly ListedPlant[], index: number, isRange: boolean): void {
    const from = isRange ? plants.findIndex(({ id }) => id === this.#anchor) : -1;
    const anchor = plants[from];
    const plant = plants[index];
    if (!plant) return;
    const isSelected = anchor ? this.has(anchor) : !this.has(plant);
    const start = anchor ? Math.min(from, index) : index;
    for (const each of plants.slice(start, Math.max(from, index) + 1)) {
      if (isSelected) this.#plants.set(each.id, each);
      else this.#plants.delete(each.id);
    }
    this.#anchor = plant.id;
    this.#events.onChange();
  }

  drop(plants: readonly Plant[]): void {
    for (const { id } of plants) this.#plants.delete(id);
  }

  draw(list: PlantList, summary: Summary | undefined): void {
    const { tag, q } = list.query;
    const total = countPlants(list, summary);
    const all = total === undefined ? "all" : `all ${renderCount(total)}`;
    const tagged = tag === "" ? "without a tag" : "with this tag";
    const which = q !== undefined ? "that match" : tag === undefined ? "plants" : tagged;
    const { size } = this.#plants;
    this.#opener.ariaPressed = String(this.#isOn);
    show(find("selection"), this.#isOn);
    find("selection-note").textContent = `${renderCount(size)} selected`;
    this.#allButton.textContent = this.#isAll(list) ? "Select none" : `Select ${all} ${which}`;
    this.#deleteButton.textContent = `Delete ${renderCount(size, "plant")}`;
    show(this.#deleteButton, size > 0);
  }

  #isAll({ isComplete, plants, waiting }: PlantList): boolean {
    const isEach = plants.every((plant) => plant.goneBecause || this.has(plant));
    return isComplete && isEach && waiting.length === 0 && this.#plants.size > 0;
  }

  #close(): void {
    if (!this.#isOn) return;
    this.toggle();
    this.#opener.focus();
  }

  /** Loads the list first, so that nobody deletes plants that the page has never shown. */
  async #toggleAll(): Promise<void> {
    const list = this.#events.list();
    const isAll = this.#isAll(list);
    this.clear();
    if (!isAll) await this.#events.loadAll();
    if (!isAll && this.#isOn && list.isComplete && list === this.#events.list()) {
      list.admit();
      for (const plant of list.plants) if (!plant.goneBecause) this.#plants.set(plant.id, plant);
    }
    this.#events.onChange();
  }

  async #delete(): Promise<void> {
    const deleted: Plant[] = [];
    try {
      const plants = await this.#read();
      // One request at a time, so that what was deleted before a failure can still be undone.
      for (let at = 0; at < plants.length; at += deletedAtOnce) {
        const some = plants.slice(at, at + deletedAtOnce);
        const results = await api.deleteMany(some.map(({ id }) => id));
        deleted.push(...some.filter((_, index) => results[index]?.status === 204));
      }
      this.#close();
    } catch (error) {
      notify(message`Not everything may have been deleted. ${describeError(error)}`, "trouble");
      this.#events.onStale();
    }
    this.#events.onDeleted(deleted);
  }

  async #confirm(): Promise<boolean> {
    const list = this.#events.list();
    const isWhole = this.#isAll(list) && !isFiltered(list.query);
    const { size } = this.#plants;
    if (size <= unconfirmedMax && !isWhole) return true;
    const plants = renderCount(size, "plant");
    const question = isWhole ? "Delete the whole garden?" : `Delete ${plants}?`;
    const note = "You can undo this until you dismiss the message that follows, or leave the page.";
    return confirm(question, note, `Delete ${plants}`);
  }

  /** The selected plants, except for the ones that somebody else has changed since. */
  async #read(): Promise<Plant[]> {
    const list = this.#events.list();
    const selected = new Map(this.#plants);
    const isSelected = ({ id }: Plant) => selected.has(id);
    const before = list.plants[list.plants.findIndex(isSelected) - 1]?.id;
    const last = list.plants.findLast(isSelected)?.id;
    const size = selected.size > pageSize ? pageSizeMax : pageSize;
    const found: Plant[] = [];
    for await (const page of api.listPages(list.query, { after: before, pageSize: size })) {
      for (const plant of page) {
        const known = selected.get(plant.id);
        if (known && isSame(plant, known)) found.push(plant);
      }
      const end = page.at(-1)?.id;
      if (end !== undefined && (last === undefined || !list.isBefore(end, last))) break;
    }
    const others = selected.size - found.length;
    if (others > 0) {
      const which = `${renderCount(others)} of these plants`;
      notify(message`Somebody else changed or deleted ${which}. Nothing was done to them.`);
      this.#events.onStale();
    }
    return found;
  }
}
