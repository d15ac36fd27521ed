/** What stays in view while the list scrolls: the search, the order, and the selection. */
import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { renderCount } from "../src/shared/text.ts";
import { go, place } from "./address.ts";
import { Button, focus, focusSoon, Key, onEscape, onText } from "./parts.tsx";
import { focusFirstRow, stopSelecting } from "./plant-rows.tsx";
import { garden, selection } from "./state.ts";
import { isFiltered } from "./words.ts";

/** How long somebody who types pauses before the service searches. */
const typingMs = 200;

/** What is typed into the search. */
const typed = signal("");
let typingTimer: ReturnType<typeof setTimeout> | undefined;

const toQ = (text: string) => text.trim() || undefined;

function type(text: string): void {
  typed.value = text;
  clearTimeout(typingTimer);
  typingTimer = setTimeout(search, typingMs);
}

function search(): void {
  clearTimeout(typingTimer);
  const q = toQ(typed.value);
  // Back ends a search as a whole, not letter by letter.
  go({ q }, q === undefined || place.value.q === undefined);
}

export function showAll(): void {
  typed.value = "";
  clearTimeout(typingTimer);
  go({ tag: undefined, q: undefined });
  focus("filter");
}

function press(event: KeyboardEvent): void {
  if (event.key === "Enter") search();
  if (event.key === "Escape") {
    if (typed.value !== "" || isFiltered(place.value)) showAll();
    else (event.currentTarget as HTMLElement).blur();
  }
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  focusFirstRow();
}

export function Toolbar() {
  const { q } = place.value;
  const { list, isComing, canWrite } = garden;
  const isNewest = list.value.query.order === "desc";
  // A later effect could undo what was typed since.
  useLayoutEffect(() => {
    if (toQ(typed.peek()) !== q) typed.value = q ?? "";
  }, [q]);
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
          onInput={onText(type)}
          onKeyDown={press}
        />
        <Key name="/" />
      </div>
      <Button
        id="newest"
        aria-pressed={isNewest}
        onClick={() => go({ order: isNewest ? undefined : "desc" })}>
        <span>
          Newest<span class="if-wide"> first</span>
        </span>
      </Button>
      {canWrite.value && (
        <Button
          id="select"
          aria-pressed={selection.isOn.value}
          onClick={() => selection.toggle()}
          shortcut="x"
          label="Select"
        />
      )}
      {selection.isOn.value && <SelectionBar />}
      {isComing.value && (
        <div id="busy" class="busy" role="status">
          <span class="unseen">Loading plants</span>
        </div>
      )}
    </div>
  );
}

function SelectionBar() {
  const { changing } = selection;
  const isTagging = useSignal(false);
  const size = selection.size.value;
  const toggleForm = () => {
    isTagging.value = !isTagging.value;
    focusSoon("new-tag");
  };
  return (
    <div
      id="selection"
      class="selection"
      role="group"
      aria-label="Selected plants"
      onKeyDown={onEscape(stopSelecting)}>
      <p id="selection-note" role="status">
        {renderCount(size)} selected
      </p>
      <Button id="select-all" task={changing} onClick={() => selection.toggleAll()}>
        {selection.allLabel}
      </Button>
      {size > 0 && (
        <>
          <Button
            id="tag-selected"
            aria-expanded={isTagging.value}
            task={changing}
            onClick={toggleForm}
            label="Change the tag"
          />
          <Button
            id="delete-selected"
            class="danger"
            task={changing}
            onClick={() => selection.delete()}
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
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    void selection.changeTag(String(fields.get("tag")));
  };
  return (
    <form class="tag-form" autocomplete="off" noValidate onSubmit={submit}>
      <label for="new-tag">New tag</label>
      <input id="new-tag" name="tag" list="known-tags" placeholder="none" />
      <Button id="tag-button" class="primary" type="submit" task={selection.changing}>
        {`Change ${renderCount(selection.size.value, "plant")}`}
      </Button>
    </form>
  );
}
