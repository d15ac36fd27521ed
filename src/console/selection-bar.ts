/** What can be done with selected plants: select all, and delete them together. */
import { renderCount } from "../plant-file/words.ts";
import {
  type Api,
  describeError,
  type Host,
  isSame,
  type Plant,
  pageSize,
  type Summary,
} from "./api.ts";
import { find, message, notify, show, whileBusy } from "./elements.ts";
import type { Garden } from "./garden.ts";
import { countPlants } from "./garden-words.ts";
import type { Selection } from "./selection.ts";

/** What the service deletes in one request. */
const deletedAtOnce = 10_000;

export interface SelectionEvents extends Host {
  /** The list that is shown. */
  readonly garden: () => Garden;
  /** Something else is selected. */
  readonly onChange: () => void;
  /** Everything is, and somebody may want to know how much that is. */
  readonly onAll: () => void;
  readonly onDeleted: (plants: readonly Plant[]) => void;
  /** The list is no longer what the service has. */
  readonly onStale: () => void;
}

export class SelectionBar {
  readonly #selection: Selection;
  readonly #events: SelectionEvents;
  readonly #toggle = find("select");
  readonly #deleteButton = find<HTMLButtonElement>("delete-selected");

  constructor(selection: Selection, events: SelectionEvents) {
    this.#selection = selection;
    this.#events = events;
    this.#toggle.addEventListener("click", () => this.toggle());
    find("select-done").addEventListener("click", () => this.#close());
    for (const id of ["rows", "selection"]) {
      find(id).addEventListener("keydown", ({ key }) => key === "Escape" && this.#close());
    }
    find("select-all").addEventListener("click", () => {
      selection.setAll(!selection.isAll);
      events.onChange();
      if (selection.isAll) events.onAll();
    });
    this.#deleteButton.addEventListener("click", () => {
      void whileBusy(this.#deleteButton, () => this.#delete());
    });
  }

  toggle(): void {
    this.#selection.setOn(!this.#selection.isOn);
    this.#events.onChange();
  }

  #close(): void {
    if (!this.#selection.isOn) return;
    this.toggle();
    this.#toggle.focus();
  }

  draw(garden: Garden, summary: Summary | undefined): void {
    const { isOn, isAll } = this.#selection;
    const { tag, q } = garden.query;
    const total = countPlants(garden, summary);
    const count = this.#selection.count(total);
    const all = total === undefined ? "all" : `all ${renderCount(total)}`;
    const tagged = tag === "" ? "without a tag" : "with this tag";
    const which = q !== undefined ? "that match" : tag === undefined ? "plants" : tagged;
    const selected = count === undefined ? `${all} ${which}` : renderCount(count);
    const plants = count === undefined ? selected : renderCount(count, "plant");
    this.#toggle.ariaPressed = String(isOn);
    show(find("selection"), isOn);
    find("selection-note").textContent = `${selected} selected`;
    find("select-all").textContent = isAll ? "Select none" : `Select ${all} ${which}`;
    this.#deleteButton.textContent = `Delete ${plants}`;
    show(this.#deleteButton, count !== 0);
  }

  async #delete(): Promise<void> {
    const api = this.#events.api();
    const deleted: Plant[] = [];
    try {
      const plants = await this.#read(api);
      for (let at = 0; at < plants.length; at += deletedAtOnce) {
        const some = plants.slice(at, at + deletedAtOnce);
        const gone = new Set(await api.deleteMany(some.map(({ id }) => id)));
        deleted.push(...some.filter(({ id }) => gone.has(id)));
      }
      this.#close();
    } catch (error) {
      if (this.#events.onError(error)) return;
      notify(message`Not everything may have been deleted. ${describeError(error)}`, "trouble");
      this.#events.onStale();
    }
    this.#events.onDeleted(deleted);
  }

  /** The selected plants as the service has them now, except those that others have changed. */
  async #read(api: Api): Promise<Plant[]> {
    const garden = this.#events.garden();
    const { isAll } = this.#selection;
    const isSelected = this.#selection.freeze();
    const shown = new Map(garden.plants.filter(isSelected).map((plant) => [plant.id, plant]));
    const last = garden.plants.findLast(isSelected)?.id ?? 0n;
    const before = garden.plants[garden.plants.findIndex(isSelected) - 1]?.id;
    const part = isAll ? {} : { after: before, size: pageSize };
    const found: Plant[] = [];
    let others = shown.size;
    for await (const page of api.pages(garden.query, part)) {
      for (const plant of page.filter(isSelected)) {
        const known = shown.get(plant.id);
        if (known && !isSame(plant, known)) continue;
        found.push(plant);
        if (known) others--;
      }
      const end = page.at(-1)?.id;
      if (!isAll && end !== undefined && !garden.isBefore(end, last)) break;
    }
    if (others > 0) {
      const which = `${renderCount(others)} of these plants`;
      notify(message`Somebody else changed or deleted ${which}. Nothing was done to them.`);
      this.#events.onStale();
    }
    return found;
  }
}
