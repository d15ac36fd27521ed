/**
 * The table of plants. The page has only the rows near the window, so ten thousand plants scroll
 * like ten. ARIA attributes give the row numbers of the whole list.
 */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Whole } from "../client/types.ts";
import { AddForm, closeAdd, isAdding } from "./add-form.tsx";
import { go } from "./address.ts";
import { EditorRow } from "./editor-row.tsx";
import { focus, isTyping } from "./parts.tsx";
import type { ListedPlant } from "./plant-list.ts";
import { editor, garden, selection } from "./state.ts";
import { TableHead } from "./table-head.tsx";

/** How many rows to render beyond each edge of the window. */
const overscan = 8;
/** How close to the window the end of the list gets before the next page loads. */
const loadAheadRows = 40;

/** The indexes of the rendered rows. */
const from = signal(0);
const to = signal(0);
/** The row that had the focus last: the Tab key leads to it. */
const current = signal<bigint | undefined>();

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

/** Focuses the first row in view, even from a field. */
export function focusFirstRow(): void {
  (document.activeElement as HTMLElement | null)?.blur();
  focusRow(Math.max(0, Math.ceil(rowsAbove(viewTop()))));
}

export function PlantRows() {
  const { plants, size, isLoaded } = garden.list.value;
  const target = garden.target.value;
  const drawn = useRef(plants);
  const focusedId = drawn.current[indexAt(document.activeElement)]?.id;
  const editedId = editor.editing.value?.base.id;
  // Read here once instead of by every row, of which hundreds are drawn while somebody scrolls.
  const canWrite = garden.canWrite.value;
  const selected = selection.plants.value;
  const fresh = garden.fresh.value;
  // Measured before the rows change: what is in view stays where it is.
  const shift = plants === drawn.current ? 0 : findShift(drawn.current, plants);
  drawn.current = plants;

  useLayoutEffect(() => {
    if (shift !== 0) scrollBy({ top: shift * rowHeight(), behavior: "instant" });
    measure();
  }, [plants]);
  useLayoutEffect(() => {
    const isElsewhere = indexAt(document.activeElement) < 0;
    const isLost = focusedId !== undefined && focusedId !== editedId && isElsewhere;
    if (target) follow(plants);
    // The row was redrawn or removed. From the title, arrow keys lead back into the list.
    else if (isLost && !document.activeElement?.closest("dialog, form")) {
      garden.target.value = { id: focusedId, isFocused: true };
    }
  });
  useEffect(() => {
    new ResizeObserver(measure).observe(document.body);
    addEventListener("scroll", measure, { passive: true });
    addEventListener("scrollend", () => garden.settle());
  }, []);

  const places = listPlaces(plants, [focusedId, editedId]);
  const height = places.length === 0 ? 0 : rowHeight();
  const isEditedHere = places.some((place) => plants[place]?.id === editedId);
  const tabbed = findTabbed(plants, places);
  const idCharacters = useMemo(() => findLongestId(plants), [plants]);
  const isShown = size > 0 || !isLoaded || isAdding.value || editedId !== undefined;
  return (
    <div
      id="table"
      class="table"
      role="table"
      aria-labelledby="garden-title garden-note"
      aria-rowcount={plants.length + 1}
      style={{ "--id-characters": String(idCharacters) }}
      hidden={!isShown}>
      <TableHead />
      <FirstRow isEditedHere={isEditedHere} />
      <div
        id="rows"
        class="rows"
        role="rowgroup"
        style={{ height: `${plants.length * height}px` }}
        onClick={click}
        onKeyDown={press}
        onFocusIn={({ target }) => {
          current.value = plants[indexAt(target)]?.id ?? current.peek();
        }}
        onAnimationEnd={() => {
          garden.fresh.value = new Set();
        }}>
        {places.map((place) => {
          const plant = plants[place] as ListedPlant;
          const props = { plant, place, top: place * height };
          if (plant.id === editedId) return <EditedRow key={plant.id} {...props} />;
          return (
            <Row
              key={plant.id}
              {...props}
              isTabbed={place === tabbed}
              isSelectable={canWrite}
              isSelected={selected.has(plant.id)}
              isFresh={fresh.has(plant.id)}
            />
          );
        })}
      </div>
    </div>
  );
}

/** The form that adds plants, or an opened plant that isn't in the list. */
function FirstRow({ isEditedHere }: { isEditedHere: boolean }) {
  const isOther = editor.editing.value !== undefined && !isEditedHere;
  if (!isAdding.value && !isOther) return null;
  return (
    <div class="first-row" role="rowgroup">
      <div role="row">
        <div role="cell">
          {isOther ? <EditorRow key={editor.editing.value?.base.id} /> : <AddForm />}
        </div>
      </div>
    </div>
  );
}

interface RowProps {
  readonly plant: ListedPlant;
  readonly place: number;
  readonly top: number;
}

/** Covers the rows below, so that none of them moves. */
function EditedRow({ place, top }: RowProps) {
  return (
    <div class="row edited" role="row" aria-rowindex={place + 2} style={{ "--top": `${top}px` }}>
      <div role="cell">
        <EditorRow />
      </div>
    </div>
  );
}

interface PlainRowProps extends RowProps {
  readonly isTabbed: boolean;
  readonly isSelectable: boolean;
  readonly isSelected: boolean;
  readonly isFresh: boolean;
}

/** The whole row is a button, except for its check box. */
function Row(props: PlainRowProps) {
  const { plant, place, top, isTabbed, isSelectable, isSelected, isFresh } = props;
  const { id, goneBecause = "" } = plant;
  const { name, tag }: Whole<"name" | "tag"> = plant;
  const tabIndex = isTabbed ? 0 : -1;
  return (
    <div
      class={`row ${goneBecause} ${isFresh ? "fresh" : ""} ${isSelected ? "selected" : ""}`}
      role="row"
      title={tag === "" ? name : `${name}\n${tag}`}
      aria-rowindex={place + 2}
      style={{ top: `${top}px` }}>
      <span class="box" role="cell">
        {isSelectable && (
          <input
            type="checkbox"
            tabIndex={tabIndex}
            aria-label={`Select ${name}`}
            checked={isSelected}
          />
        )}
      </span>
      <span class="name" role="cell">
        <button class="opener" type="button" tabIndex={tabIndex}>
          <bdi>{goneBecause === "deleted" ? <del>{name}</del> : name}</bdi>
        </button>
      </span>
      <span class="tag" role="cell">
        {tag !== "" && <bdi class="label">{tag}</bdi>}
      </span>
      <span class="number" role="cell">
        {String(id)}
      </span>
    </div>
  );
}

function findLongestId(plants: readonly ListedPlant[]): number {
  let [lowest, highest] = [0n, 10n];
  for (const { id } of plants) {
    if (id < lowest) lowest = id;
    else if (id > highest) highest = id;
  }
  return Math.max(String(lowest).length, String(highest).length);
}

/** The row that the Tab key leads to: the one that had the focus, or the first in view. */
function findTabbed(plants: readonly ListedPlant[], places: readonly number[]): number | undefined {
  const last = places.find((place) => plants[place]?.id === current.value);
  if (last !== undefined || places.length === 0) return last;
  const { first } = garden.view();
  return places.find((place) => place >= first);
}

/** The rows near the window, and those that must stay: removing a focused one loses the focus. */
function listPlaces(
  plants: readonly ListedPlant[],
  kept: readonly (bigint | undefined)[],
): number[] {
  const end = Math.min(plants.length, to.value);
  const places = new Set<number>();
  for (let place = from.value; place < end; place++) places.add(place);
  for (const id of kept) {
    const place = id === undefined ? -1 : plants.findIndex((plant) => plant.id === id);
    if (place >= 0) places.add(place);
  }
  // In order, for the Tab key.
  return [...places].sort((a, b) => a - b);
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
  // Nobody who types is led away.
  if (isFocused && isTyping()) {
    garden.target.value = undefined;
    return;
  }
  if (isTop) scrollTo({ top: 0, behavior: "instant" });
  if (row >= 0) scrollToRow(row);
  const control = `#rows [aria-rowindex="${row + 2}"] :is(.opener, #edit-name)`;
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
  const target = event.target as Element;
  if (!plant || target.closest("#edit")) return;
  const isBox = target.closest(".box") !== null;
  const isSelecting = isBox || event.shiftKey || event.ctrlKey || event.metaKey;
  if (isSelecting && garden.canWrite.value) {
    selection.togglePlant(index, event.shiftKey);
    focusRow(index);
  } else if (!isBox) {
    closeAdd();
    editor.firstField = isInTag(target, event.clientX) ? "tag" : "name";
    go({ plant: plant.id });
  }
}

/** Whether a click on a row is on its tag: the button of the row covers all of it. */
function isInTag(target: Element, clientX: number): boolean {
  const { left = 0, right = 0 } =
    target.closest(".row")?.querySelector(".tag")?.getBoundingClientRect() ?? {};
  return clientX > left && clientX < right;
}

/** Selects the focused row, or all rows up to it. */
export function selectFocused(isRange: boolean): void {
  const index = indexAt(document.activeElement);
  if (index < 0) focusFirstRow();
  else selection.togglePlant(index, isRange);
}

function press(event: KeyboardEvent): void {
  const { plants } = garden.list.value;
  const index = indexAt(event.target);
  const plant = plants[index];
  if (!plant || (event.target as Element).closest("#edit")) return;
  const canWrite = garden.canWrite.value;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    const next = index + step;
    if (canWrite && event.shiftKey && plants[next]) selection.extend(index, next);
    if (next < 0) focus("filter");
    else focusRow(next);
  } else if (event.key === "Delete" && canWrite) {
    if (selection.size.value > 0) void selection.delete();
    else void editor.delete(plant);
  }
}
