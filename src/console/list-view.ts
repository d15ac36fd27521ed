/**
 * The rows of the list. Only those near the window are in the page, so that ten thousand plants
 * scroll like ten; ARIA attributes give the row numbers of the whole list.
 */
import type { Plant } from "./api.ts";
import { find, make } from "./elements.ts";

/** How many rows to render beyond each edge of the window. */
const overscan = 12;

export interface ListEvents {
  readonly onOpen: (plant: Plant) => void;
  readonly onDelete: (plant: Plant) => void;
}

export class ListView {
  readonly #table = find("table");
  readonly #rows = find("rows");
  readonly #shown = new Map<Plant, HTMLElement>();
  readonly #events: ListEvents;
  #plants: readonly Plant[] = [];
  #canDelete = true;
  #isDrawing = false;

  constructor(events: ListEvents) {
    this.#events = events;
    addEventListener("scroll", () => this.#drawSoon(), { passive: true });
    addEventListener("resize", () => this.#drawSoon());
    this.#rows.addEventListener("keydown", (event) => this.#moveByKey(event));
  }

  setPlants(plants: readonly Plant[], options: { canDelete: boolean }): void {
    this.#plants = plants;
    if (options.canDelete !== this.#canDelete) this.#clear();
    this.#canDelete = options.canDelete;
    this.#table.setAttribute("aria-rowcount", String(plants.length + 1));
    const idCharacters = plants.reduce((most, { id }) => Math.max(most, String(id).length), 2);
    this.#table.style.setProperty("--id-characters", String(idCharacters));
    this.#draw();
  }

  /** The index of a plant in the list, or -1. */
  indexOf(id: bigint): number {
    return this.#plants.findIndex((plant) => plant.id === id);
  }

  /** Scrolls to a plant and highlights it for a moment. */
  reveal(id: bigint): void {
    const index = this.indexOf(id);
    const plant = this.#plants[index];
    if (!plant) return;
    this.#scrollTo(index);
    this.#shown.get(plant)?.classList.add("fresh");
  }

  /** Focuses the row at this index, or the last one; false if there is none. */
  focus(index: number, part: "action" | "opener" = "action"): boolean {
    const place = Math.min(index, this.#plants.length - 1);
    const plant = this.#plants[place];
    if (!plant) return false;
    this.#scrollTo(place);
    // "Delete", if it is offered.
    const buttons = [...(this.#shown.get(plant)?.querySelectorAll("button") ?? [])];
    const button = buttons.at(part === "opener" ? 0 : -1);
    button?.focus({ preventScroll: true });
    return button !== undefined;
  }

  #scrollTo(index: number): void {
    const height = this.#rowHeight();
    const top = this.#rows.getBoundingClientRect().top + index * height;
    const bottom = find("notices").getBoundingClientRect().top;
    const isVisible = top > height && top + 2 * height < bottom;
    if (!isVisible) scrollBy({ top: top - innerHeight / 2, behavior: "instant" });
    this.#draw();
  }

  #drawSoon(): void {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => {
      this.#isDrawing = false;
      this.#draw();
    });
  }

  #draw(): void {
    const height = this.#rowHeight();
    const above = -this.#rows.getBoundingClientRect().top;
    const places = this.#placesBetween(
      Math.floor(above / height) - overscan,
      Math.ceil((above + innerHeight) / height) + overscan,
    );
    this.#rows.style.height = `${this.#plants.length * height}px`;

    const plants = new Set(places.map((place) => this.#plants[place]));
    for (const [plant, row] of this.#shown) {
      if (plants.has(plant)) continue;
      row.remove();
      this.#shown.delete(plant);
    }
    let before: HTMLElement | undefined;
    for (const place of places) {
      const plant = this.#plants[place] as Plant;
      const row = this.#shown.get(plant) ?? this.#makeRow(plant);
      row.setAttribute("aria-rowindex", String(place + 2));
      row.style.transform = `translateY(${place * height}px)`;
      // In document order, for screen readers and the Tab key.
      if (!row.isConnected) {
        if (before) before.after(row);
        else this.#rows.prepend(row);
      }
      before = row;
    }
  }

  /** Includes the row that has the focus: removing it would lose the focus. */
  #placesBetween(first: number, last: number): number[] {
    const from = Math.max(0, first);
    const to = Math.min(this.#plants.length, last);
    const places = Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
    for (const [plant, row] of this.#shown) {
      if (!row.contains(document.activeElement)) continue;
      const place = this.#plants.indexOf(plant);
      if (place >= to) places.push(place);
      else if (place >= 0 && place < from) places.unshift(place);
    }
    return places;
  }

  #makeRow(plant: Plant): HTMLElement {
    const { id, name, tag } = plant;
    const opener = make(
      "button",
      { type: "button", class: "opener", "aria-haspopup": "dialog" },
      make("bdi", {}, name),
    );
    opener.addEventListener("click", () => this.#events.onOpen(plant));
    const row = make(
      "div",
      { class: "row", role: "row" },
      make("span", { class: "number", role: "cell" }, String(id)),
      make("span", { class: "name", role: "cell", title: name }, opener),
      make("span", { class: "tag", role: "cell", title: tag }, make("bdi", {}, tag)),
    );
    const action = make("span", { class: "action", role: "cell" });
    if (this.#canDelete) {
      const button = make("button", { type: "button", "aria-label": `Delete ${name}` }, "Delete");
      button.addEventListener("click", () => this.#events.onDelete(plant));
      action.append(button);
    }
    row.append(action);
    this.#shown.set(plant, row);
    return row;
  }

  #moveByKey(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = (event.target as Element).closest(".row");
    if (!step || !row) return;
    event.preventDefault();
    this.focus(Math.max(0, Number(row.getAttribute("aria-rowindex")) - 2 + step));
  }

  #clear(): void {
    for (const row of this.#shown.values()) row.remove();
    this.#shown.clear();
  }

  /** The style sheet sets it, depending on the width of the window. */
  #rowHeight(): number {
    return Number.parseFloat(getComputedStyle(this.#rows).getPropertyValue("--row-height"));
  }
}
