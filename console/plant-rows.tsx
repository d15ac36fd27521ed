/**
 * The table of plants. The page has only the rows near the window, so ten thousand plants scroll
 * like ten. ARIA attributes give the row numbers of the whole list.
 */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Whole } from "../client/types.ts";
import { go } from "./address.ts";
import { Button, focus } from "./parts.tsx";
import type { ListedPlant } from "./plant-list.ts";
import { card, garden, selection } from "./state.ts";

/** How many rows to render beyond each edge of the window. */
const overscan = 12;
/** How close to the window the end of the list gets before the next page loads. */
const loadAheadRows = 40;

const selected = <span class="unseen">Selected</span>;
const columns = { box: selected, number: "Id", name: "Name", tag: "Tag" };

/** The indexes of the rendered rows. */
const from = signal(0);
const to = signal(0);

const edgeOf = (id: string, edge: "top" | "bottom") =>
  document.getElementById(id)?.getBoundingClientRect()[edge] ?? 0;
/** Where the toolbar ends and rows become visible. */
const viewTop = () => Math.max(0, edgeOf("toolbar", "bottom"));
/** The style sheet sets it, depending on the window's width. */
const rowHeight = () => {
  const rows = document.getElementById("rows") as HTMLElement;
  return Number.parseFloat(getComputedStyle(rows).getPropertyValue("--row-height"));
};
/** How many rows are between the start of the list and this place in the window. */
const rowsAbove = (top: number) => (top - edgeOf("rows", "top")) / rowHeight();

garden.view = () => ({
  first: Math.floor(rowsAbove(viewTop())),
  last: Math.ceil(rowsAbove(innerHeight)) - 1,
});

/** Renders the rows that are near the window now, and loads more before the list ends. */
function measure(): void {
  from.value = Math.max(0, Math.floor(rowsAbove(0)) - overscan);
  to.value = Math.max(0, Math.ceil(rowsAbove(innerHeight)) + overscan);
  // Somewhere else, if the page is about to go there, the list may not end.
  const isSettled = garden.target.peek() === undefined;
  const isNear = to.peek() + loadAheadRows > garden.list.peek().plants.length;
  if (isSettled && isNear) void garden.loadMore();
}

/** Focuses the row at this index, once it is rendered. */
function focusRow(index: number): void {
  garden.target.value = { index, isFocused: true };
}

/** Focuses the first row in view. */
export function focusFirstRow(): void {
  focusRow(Math.max(0, Math.ceil(rowsAbove(viewTop()))));
}

export function stopSelecting(): void {
  if (!selection.isOn.value) return;
  selection.toggle();
  focus("select");
}

export function PlantRows() {
  const { plants, size } = garden.list.value;
  const target = garden.target.value;
  const drawn = useRef(plants);
  const focusedId = drawn.current[indexAt(document.activeElement)]?.id;
  // Measured before the rows change: what is in view stays where it is.
  const shift = plants === drawn.current ? 0 : findShift(drawn.current, plants);
  drawn.current = plants;

  useLayoutEffect(() => {
    if (shift !== 0) scrollBy({ top: shift * rowHeight(), behavior: "instant" });
    measure();
  }, [plants]);
  useLayoutEffect(() => {
    const isLost = focusedId !== undefined && indexAt(document.activeElement) < 0;
    if (target) follow(plants);
    // The row was redrawn or removed. From the title, arrow keys lead back into the list.
    else if (isLost && !document.activeElement?.closest("dialog")) {
      garden.target.value = { id: focusedId, isFocused: true };
    }
  });
  useEffect(() => {
    new ResizeObserver(measure).observe(document.body);
    addEventListener("scroll", measure, { passive: true });
    addEventListener("scrollend", () => garden.settle());
  }, []);

  const places = listPlaces(plants, focusedId);
  const height = places.length === 0 ? 0 : rowHeight();
  // The longest id is the first or the last.
  const ends = [plants[0], plants.at(-1)].map((plant) => String(plant?.id ?? "").length);
  return (
    <div
      id="table"
      class={`table ${selection.isOn.value ? "selecting" : ""}`}
      role="table"
      aria-labelledby="garden-title"
      aria-rowcount={plants.length + 1}
      style={{ "--id-characters": String(Math.max(2, ...ends)) }}
      hidden={size === 0}>
      <div role="rowgroup">
        <div class="row head" role="row" aria-rowindex={1}>
          {Object.entries(columns).map(([name, title]) => (
            <span key={name} class={name} role="columnheader">
              {title}
            </span>
          ))}
        </div>
      </div>
      <div
        id="rows"
        class="rows"
        role="rowgroup"
        style={{ height: `${plants.length * height}px` }}
        onClick={click}
        onKeyDown={press}
        onAnimationEnd={() => {
          garden.fresh.value = new Set();
        }}>
        {places.map((place) => {
          const plant = plants[place] as ListedPlant;
          return <Row key={plant.id} plant={plant} place={place} top={place * height} />;
        })}
      </div>
    </div>
  );
}

/** The whole row is a button, or a checkbox while somebody is selecting. */
function Row({ plant, place, top }: { plant: ListedPlant; place: number; top: number }) {
  const { id, goneBecause = "" } = plant;
  const { name, tag }: Whole<"name" | "tag"> = plant;
  const text = <bdi>{goneBecause === "deleted" ? <del>{name}</del> : name}</bdi>;
  const opener = <Button class="opener" aria-haspopup="dialog" label={text} />;
  return (
    <div
      class={`row ${goneBecause} ${garden.fresh.value.has(id) ? "fresh" : ""}`}
      role="row"
      title={tag === "" ? name : `${name}\n${tag}`}
      aria-rowindex={place + 2}
      style={{ transform: `translateY(${top}px)` }}>
      {selection.isOn.value && (
        <span class="box" role="cell">
          <input type="checkbox" aria-label={`Select ${name}`} checked={selection.has(plant)} />
        </span>
      )}
      <span class="number" role="cell">
        {String(id)}
      </span>
      <span class="name" role="cell">
        {selection.isOn.value ? text : opener}
      </span>
      <span class="tag" role="cell">
        <bdi>{tag}</bdi>
      </span>
    </div>
  );
}

/** Includes the focused row: removing it would lose the focus. In order, for the Tab key. */
function listPlaces(plants: readonly ListedPlant[], focusedId: bigint | undefined): number[] {
  const end = Math.min(plants.length, to.value);
  const places = Array.from(
    { length: Math.max(0, end - from.value) },
    (_, index) => from.value + index,
  );
  const place = focusedId === undefined ? -1 : plants.findIndex(({ id }) => id === focusedId);
  if (place >= end) places.push(place);
  else if (place >= 0 && place < from.value) places.unshift(place);
  return places;
}

/** By how many rows the first row in view would move. The start of the list may move. */
function findShift(before: readonly ListedPlant[], after: readonly ListedPlant[]): number {
  const { first, last } = garden.view();
  if (first <= 0 || before.length === 0) return 0;
  const indexes = new Map(after.map(({ id }, index) => [id, index]));
  for (const [place, { id }] of before.slice(first, last + 1).entries()) {
    const index = indexes.get(id);
    if (index !== undefined) return index - first - place;
  }
  return 0;
}

/** Goes where the page should go. If that row isn't drawn yet, drawing it leads here again. */
function follow(plants: readonly ListedPlant[]): void {
  const { id, index = -1, isFocused, isTop } = garden.target.peek() ?? {};
  const place = id === undefined ? index : plants.findIndex((plant) => plant.id === id);
  const row = Math.min(place, plants.length - 1);
  if (isTop) scrollTo({ top: 0, behavior: "instant" });
  if (row >= 0) scrollToRow(row);
  const control = `#rows [aria-rowindex="${row + 2}"] :is(button, input)`;
  const found = document.querySelector<HTMLElement>(row < 0 ? "#garden-title" : control);
  if (isFocused) found?.focus({ preventScroll: true });
  if (found || !isFocused) garden.target.value = undefined;
}

function scrollToRow(index: number): void {
  const height = rowHeight();
  const top = edgeOf("rows", "top") + index * height;
  const isVisible = top >= viewTop() && top + height <= edgeOf("notices", "top");
  if (!isVisible) scrollBy({ top: top - innerHeight / 2, behavior: "instant" });
  measure();
}

function indexAt(target: EventTarget | null): number {
  const row = target instanceof Element ? target.closest("#rows .row") : null;
  return row ? Number(row.getAttribute("aria-rowindex")) - 2 : -1;
}

function click(event: MouseEvent): void {
  const index = indexAt(event.target);
  const plant = garden.list.value.plants[index];
  if (!plant) return;
  if (selection.isOn.value) {
    focusRow(index);
    selection.togglePlant(index, event.shiftKey);
  } else go({ plant: plant.id });
}

function press(event: KeyboardEvent): void {
  const { plants } = garden.list.value;
  const isSelecting = selection.isOn.value;
  const index = indexAt(event.target);
  const plant = plants[index];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") stopSelecting();
  else if (step) {
    event.preventDefault();
    const next = index + step;
    if (isSelecting && event.shiftKey && plants[next]) selection.setRange(index, next, true);
    if (next < 0) focus("filter");
    else focusRow(next);
  } else if (event.key === "Delete" && plant && !isSelecting && garden.canWrite.value) {
    void card.delete(plant);
  }
}
