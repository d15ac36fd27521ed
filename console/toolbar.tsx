/** What stays in view while the list scrolls: the search, the order, and the selection. */
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { renderCount } from "../client/files/renderer.ts";
import { Button, Key } from "./parts.tsx";
import { focusFirstRow, stopSelecting } from "./plant-rows.tsx";
import { address, bulk, garden } from "./state.ts";
import { isFiltered } from "./words.ts";

/** How long somebody who types pauses before the service searches. */
const typingMs = 200;

/** What is typed into the search. */
const typed = signal("");
let typingTimer: ReturnType<typeof setTimeout> | undefined;

const toQ = (text: string) => text.trim() || undefined;

function search(): void {
  clearTimeout(typingTimer);
  const q = toQ(typed.value);
  const before = address.place.value.q;
  if (q === before) return;
  // Back ends a search as a whole, not letter by letter.
  if (q !== undefined && before !== undefined) address.replace({ q });
  else address.go({ q });
}

export function showAll(): void {
  typed.value = "";
  clearTimeout(typingTimer);
  address.go({ tag: undefined, q: undefined });
  document.getElementById("filter")?.focus();
}

export function Toolbar() {
  const { q } = address.place.value;
  const { selection, list, isComing, canWrite } = garden;
  const isNewest = list.value.query.order === "desc";
  const isSelecting = selection.isOn.value;
  useEffect(() => {
    if (toQ(typed.peek()) !== q) typed.value = q ?? "";
  }, [q]);
  const type = (event: { currentTarget: HTMLInputElement }) => {
    typed.value = event.currentTarget.value;
    clearTimeout(typingTimer);
    typingTimer = setTimeout(search, typingMs);
  };
  return (
    <div id="toolbar" class="toolbar">
      <div class="filter">
        <label class="unseen" for="filter">
          Find by name, tag or id
        </label>
        <input
          id="filter"
          type="search"
          placeholder="Name, tag or id"
          maxLength={100}
          autocomplete="off"
          spellcheck={false}
          value={typed.value}
          onInput={type}
          onKeyDown={press}
        />
        <Key name="/" />
      </div>
      <Button
        id="newest"
        aria-pressed={isNewest}
        onClick={() => address.go({ order: isNewest ? undefined : "desc" })}
        label={
          <span>
            Newest<span class="if-wide"> first</span>
          </span>
        }
      />
      {canWrite.value && (
        <Button
          id="select"
          class="writing"
          aria-pressed={isSelecting}
          onClick={() => selection.toggle()}
          label="Select"
          shortcut="x"
        />
      )}
      {isSelecting && <SelectionBar />}
      {isComing.value && (
        <div id="busy" class="busy" role="status">
          <span class="unseen">Loading plants</span>
        </div>
      )}
    </div>
  );
}

function press(event: KeyboardEvent): void {
  if (event.key === "Enter") search();
  if (event.key === "Escape") {
    if (typed.value !== "" || isFiltered(address.place.value)) showAll();
    else (event.currentTarget as HTMLElement).blur();
  }
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  focusFirstRow();
}

function SelectionBar() {
  const isTagging = useSignal(false);
  const size = garden.selection.size.value;
  const isBusy = bulk.isBusy.value;
  return (
    <div
      id="selection"
      class="selection"
      role="group"
      aria-label="Selected plants"
      onKeyDown={({ key }) => key === "Escape" && stopSelecting()}>
      <p id="selection-note" role="status">
        {renderCount(size)} selected
      </p>
      <Button
        id="select-all"
        isBusy={isBusy}
        onClick={() => void bulk.toggleAll()}
        label={bulk.selectLabel}
      />
      {size > 0 && (
        <>
          <Button
            id="tag-selected"
            aria-expanded={isTagging.value}
            aria-controls="tag-form"
            isBusy={isBusy}
            onClick={() => {
              isTagging.value = !isTagging.value;
            }}
            label="Change the tag"
          />
          <Button
            id="delete-selected"
            class="danger"
            isBusy={isBusy}
            onClick={() => void bulk.delete()}
            label={`Delete ${renderCount(size, "plant")}`}
          />
        </>
      )}
      <Button id="select-done" onClick={stopSelecting} label="Done" />
      {size > 0 && isTagging.value && <TagForm />}
    </div>
  );
}

/** Gives all selected plants the same tag. */
function TagForm() {
  const tag = useSignal("");
  const input = useRef<HTMLInputElement>(null);
  const size = garden.selection.size.value;
  useEffect(() => input.current?.focus(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    void bulk.changeTag(tag.value);
  };
  return (
    <form id="tag-form" class="tag-form" autocomplete="off" noValidate onSubmit={submit}>
      <label for="new-tag">New tag</label>
      <input
        id="new-tag"
        ref={input}
        list="known-tags"
        placeholder="none"
        value={tag.value}
        onInput={(event) => {
          tag.value = event.currentTarget.value;
        }}
      />
      <Button
        id="tag-button"
        class="primary"
        type="submit"
        isBusy={bulk.isBusy.value}
        label={`Change ${renderCount(size, "plant")}`}
      />
    </form>
  );
}
