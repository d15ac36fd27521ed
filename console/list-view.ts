/**
 * The rows of the list. The page has only the rows near the window, so ten thousand plants scroll
 * like ten. ARIA attributes give the row numbers of the whole list.
 */
import type { Plant } from "./api.ts";
import { find, make, setChildren } from "./elements.ts";
import type { ListedPlant, View } from "./plant-list.ts";
import type { Selection } from "./selection.ts";

/** How many rows to render beyond each edge of the window. */
const overscan = 12;

interface ListEvents {
  readonly onOpen: (plant: Plant) => void;
  readonly onDelete: (plant: Plant) => void;
  /** The up arrow was pressed on the first row. */
  readonly onLeave: () => void;
}

export class ListView {
  readonly #table = find("table");
  readonly #rows = find("rows");
  #shown = new Map<ListedPlant, HTMLElement>();
  readonly #events: ListEvents;
  readonly #selection: Selection;
  #plants: readonly ListedPlant[] = [];
  #isSelecting = false;
  #isDrawing = false;

  constructor(selection: Selection, events: ListEvents) {
    this.#selection = selection;
    this.#events = events;
    addEventListener("scroll", () => this.#drawSoon(), { passive: true });
    addEventListener("resize", () => this.#drawSoon());
    this.#rows.addEventListener("click", (event) => this.#click(event));
    this.#rows.addEventListener("keydown", (event) => this.#press(event));
  }

  /** What is in view stays where it is, unless the start of the list is in view. */
  draw(plants: readonly ListedPlant[]): void {
    const focused = this.#focusedId();
    let top = scrollY;
    if (plants !== this.#plants) {
      top += this.#shiftTo(plants) * this.#rowHeight();
      this.#table.setAttribute("aria-rowcount", String(plants.length + 1));
      const idCharacters = plants.reduce((most, { id }) => Math.max(most, String(id).length), 2);
      this.#table.style.setProperty("--id-characters", String(idCharacters));
    }
    this.#plants = plants;
    if (this.#selection.isOn !== this.#isSelecting) this.#shown.clear();
    this.#isSelecting = this.#selection.isOn;
    this.#table.classList.toggle("selecting", this.#isSelecting);
    this.#draw();
    if (top !== scrollY) {
      scrollTo({ top, behavior: "instant" });
      this.#draw();
    }
    if (focused === undefined || this.#focusedId() !== undefined) return;
    // The row was redrawn or removed. From the title, arrow keys lead back into the list.
    if (!this.#focusRow(this.indexOf(focused))) find("garden-title").focus({ preventScroll: true });
  }

  view(): View {
    const start = this.#rows.getBoundingClientRect().top;
    const height = this.#rowHeight();
    const first = Math.floor((this.#top() - start) / height);
    return { first, last: Math.ceil((innerHeight - start) / height) - 1 };
  }

  /** By how many rows the first row in view would move. */
  #shiftTo(plants: readonly ListedPlant[]): number {
    const { first, last } = this.view();
    if (first <= 0) return 0;
    const indexes = new Map(plants.map(({ id }, index) => [id, index]));
    for (const [place, { id }] of this.#plants.slice(first, last + 1).entries()) {
      const index = indexes.get(id);
      if (index !== undefined) return index - first - place;
    }
    return 0;
  }

  /** The index of a plant in the list, or -1. */
  indexOf(id: bigint): number {
    return this.#plants.findIndex((plant) => plant.id === id);
  }

  /** Scrolls to a plant and highlights it for a moment. */
  reveal(id: bigint): void {
    const index = this.indexOf(id);
    if (index < 0) return;
    this.#scrollTo(index);
    this.highlight([id]);
  }

  /** Highlights plants for a moment, if they are in view. */
  highlight(ids: readonly bigint[]): void {
    const fresh = new Set(ids);
    for (const [{ id }, row] of this.#shown) if (fresh.has(id)) row.classList.add("fresh");
  }

  /** Focuses the row at this index, or the last row. Returns false if there is none. */
  focus(index: number): boolean {
    const place = Math.min(index, this.#plants.length - 1);
    if (!this.#plants[place]) return false;
    this.#scrollTo(place);
    return this.#focusRow(place);
  }

  #focusRow(index: number): boolean {
    const plant = this.#plants[index];
    const row = plant && this.#shown.get(plant);
    row?.querySelector<HTMLElement>("button, input")?.focus({ preventScroll: true });
    return row !== undefined;
  }

  /** Focuses the first row in view. */
  focusFirst(): void {
    const above = this.#top() - this.#rows.getBoundingClientRect().top;
    this.focus(Math.max(0, Math.ceil(above / this.#rowHeight())));
  }

  /** Where the toolbar ends and rows become visible. */
  #top(): number {
    return Math.max(0, find("toolbar").getBoundingClientRect().bottom);
  }

  #scrollTo(index: number): void {
    const height = this.#rowHeight();
    const top = this.#rows.getBoundingClientRect().top + index * height;
    const bottom = find("notices").getBoundingClientRect().top;
    const isVisible = top >= this.#top() && top + height <= bottom;
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
    const shown = new Map<ListedPlant, HTMLElement>();
    for (const place of places) {
      const plant = this.#plants[place] as ListedPlant;
      const row = this.#shown.get(plant) ?? this.#makeRow(plant);
      row.setAttribute("aria-rowindex", String(place + 2));
      row.style.transform = `translateY(${place * height}px)`;
      const box = row.querySelector("input");
      if (box) box.checked = this.#selection.has(plant);
      shown.set(plant, row);
    }
    this.#shown = shown;
    // In document order, for screen readers and the Tab key.
    setChildren(this.#rows, [...shown.values()]);
  }

  /** Includes the focused row: removing it would lose the focus. */
  #placesBetween(first: number, last: number): number[] {
    const from = Math.max(0, first);
    const to = Math.min(this.#plants.length, last);
    const places = Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
    const focused = this.#focusedId();
    const place = focused === undefined ? -1 : this.indexOf(focused);
    if (place >= to) places.push(place);
    else if (place >= 0 && place < from) places.unshift(place);
    return places;
  }

  #focusedId(): bigint | undefined {
    for (const [{ id }, row] of this.#shown) if (row.contains(document.activeElement)) return id;
    return undefined;
  }

  /** The whole row is a button, or a checkbox while somebody is selecting. */
  #makeRow(plant: ListedPlant): HTMLElement {
    const { id, name, tag, goneBecause = "" } = plant;
    const text = make("bdi", {}, goneBecause === "deleted" ? make("del", {}, name) : name);
    const opener = { type: "button", class: "opener", "aria-haspopup": "dialog" };
    const row = make(
      "div",
      { class: `row ${goneBecause}`, role: "row", title: tag === "" ? name : `${name}\n${tag}` },
      make("span", { class: "number", role: "cell" }, String(id)),
      make(
        "span",
        { class: "name", role: "cell" },
        this.#isSelecting ? text : make("button", opener, text),
      ),
      make("span", { class: "tag", role: "cell" }, make("bdi", {}, tag)),
    );
    if (this.#isSelecting) {
      const box = make("input", { type: "checkbox", "aria-label": `Select ${name}` });
      row.prepend(make("span", { class: "box", role: "cell" }, box));
    }
    return row;
  }

  #click(event: MouseEvent): void {
    const index = this.#indexAt(event);
    const plant = this.#plants[index];
    if (!plant) return;
    if (this.#isSelecting) {
      this.focus(index);
      this.#selection.togglePlant(this.#plants, index, event.shiftKey);
    } else this.#events.onOpen(plant);
  }

  #press(event: KeyboardEvent): void {
    const index = this.#indexAt(event);
    const plant = this.#plants[index];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (index + step < 0) this.#events.onLeave();
      else this.focus(index + step);
    } else if (event.key === "Delete" && plant && !this.#isSelecting) this.#events.onDelete(plant);
  }

  #indexAt({ target }: Event): number {
    const row = (target as Element).closest(".row");
    return row ? Number(row.getAttribute("aria-rowindex")) - 2 : -1;
  }

  /** The style sheet sets it, depending on the window's width. */
  #rowHeight(): number {
    return Number.parseFloat(getComputedStyle(this.#rows).getPropertyValue("--row-height"));
  }
}
