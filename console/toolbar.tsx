/** What stays in view while the list scrolls: the search, and what can be done to plants. */
import { signal, useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { renderCount } from "../src/shared/text.ts";
import { hasActivity, openActivity } from "./activity-panel.tsx";
import { closeAdd, isAdding, openAdd } from "./add-form.tsx";
import { go, place } from "./address.ts";
import { download } from "./file-input.tsx";
import { Button, Dialog, focus, onEscape, onText } from "./parts.tsx";
import { focusFirstRow } from "./plant-rows.tsx";
import { isNarrow, isWide } from "./screen.ts";
import { exports, garden, imports, selection, session } from "./state.ts";
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
    event.stopPropagation();
    if (typed.value !== "" || isFiltered(place.value)) showAll();
    else (event.currentTarget as HTMLElement).blur();
  }
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  focusFirstRow();
}

/** Returns whether something was selected. */
export function stopSelecting(): boolean {
  if (selection.size.value === 0) return false;
  const isInside = document.activeElement?.closest("#selection") !== null;
  selection.clear();
  if (isInside) focusFirstRow();
  return true;
}

export function Toolbar() {
  const { q } = place.value;
  // A later effect could undo what was typed since.
  useLayoutEffect(() => {
    if (toQ(typed.peek()) !== q) typed.value = q ?? "";
  }, [q]);
  return (
    <div id="toolbar" class="toolbar">
      {/* On a phone it's at the foot of the screen, so that no row moves under a finger. */}
      {(selection.size.value === 0 || isNarrow.value) && <SearchBar />}
      {selection.size.value > 0 && <SelectionBar />}
      {garden.isComing.value && (
        <div id="busy" class="busy" role="status">
          <span class="unseen">Loading plants</span>
        </div>
      )}
    </div>
  );
}

function SearchBar() {
  return (
    <div class="bar">
      <div class="filter">
        <label class="unseen" for="filter">
          Find by name, tag or id
        </label>
        <input
          id="filter"
          type="search"
          placeholder={isNarrow.value ? "Search" : "Search names, tags and ids"}
          maxLength={100}
          autocomplete="off"
          spellcheck={false}
          value={typed.value}
          onInput={onText(type)}
          onKeyDown={press}
        />
        <kbd aria-hidden="true">/</kbd>
      </div>
      {!isNarrow.value && <OtherActions />}
      {garden.canWrite.value && (
        <Button
          id="open-add"
          class="primary"
          aria-expanded={isAdding.value}
          onClick={isAdding.value ? closeAdd : openAdd}
          shortcut="n">
          <span>
            Add<span class="if-wide"> a plant</span>
          </span>
        </Button>
      )}
      {isNarrow.value && <MoreActions />}
    </div>
  );
}

function OtherActions() {
  return (
    <>
      <ImportButton />
      <ExportButton />
      <ActivityButton />
    </>
  );
}

/** On a phone, there is no room for them. */
function MoreActions() {
  const isOpen = useSignal(false);
  const setOpen = (value: boolean) => () => {
    isOpen.value = value;
  };
  return (
    <>
      <Button id="open-more" aria-label="More actions" onClick={setOpen(true)} label="⋯" />
      {/* Whatever is pressed in it, or beside it, closes it. */}
      <Dialog
        id="more"
        class="card dialog more"
        aria-label="More actions"
        isOpen={isOpen.value && session.isSignedIn.value}
        onLeave={setOpen(false)}
        onClick={setOpen(false)}>
        <OtherActions />
        <Button label="Cancel" />
      </Dialog>
    </>
  );
}

function ImportButton() {
  if (!garden.canWrite.value) return null;
  const { isRunning } = imports;
  return (
    <Button
      id="open-import"
      disabled={isRunning.value}
      onClick={() => imports.open()}
      label="Import"
    />
  );
}

function ExportButton() {
  const isRunning = exports.running.value !== undefined;
  return (
    <Button
      id="export"
      disabled={isRunning}
      onClick={() => exports.export(download)}
      label="Export"
    />
  );
}

function ActivityButton() {
  if (isWide.value || !hasActivity.value) return null;
  return <Button id="open-activity" onClick={openActivity} label="Activity" />;
}

function SelectionBar() {
  const { changing, plants } = selection;
  const areTagged = [...plants.value.values()].some(({ tag }) => tag !== "");
  return (
    <div
      id="selection"
      class="bar selection"
      role="group"
      aria-label="Selected plants"
      onKeyDown={onEscape((event) => {
        event.stopPropagation();
        stopSelecting();
      })}>
      <p id="selection-note" role="status">
        {renderCount(selection.size.value)} selected
      </p>
      <MoveForm />
      {areTagged && (
        <Button id="remove-tag" task={changing} onClick={() => move("")} label="Remove tag" />
      )}
      <Button
        id="export-selected"
        disabled={exports.running.value !== undefined}
        onClick={() => exports.export(download, selection.listShown())}
        label="Export"
      />
      <Button
        id="delete-selected"
        class="danger"
        task={changing}
        onClick={() => selection.delete()}
        label="Delete"
      />
      <Button id="select-done" onClick={stopSelecting} shortcut="Esc" label="Done" />
    </div>
  );
}

async function move(tag: string): Promise<void> {
  await selection.changeTag(tag);
  // The bar with the focused button has gone.
  if (document.activeElement === document.body) focusFirstRow();
}

/** Gives all selected plants the same tag. */
function MoveForm() {
  const tag = useSignal("");
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (tag.value !== "") void move(tag.value);
  };
  return (
    <form id="move" class="move" autocomplete="off" noValidate onSubmit={submit}>
      <label class="unseen" for="new-tag">
        New tag
      </label>
      <input
        id="new-tag"
        list="known-tags"
        placeholder="Move to a tag…"
        value={tag.value}
        onInput={onText((text) => {
          tag.value = text;
        })}
      />
      <Button
        id="move-button"
        type="submit"
        task={selection.changing}
        disabled={tag.value === ""}
        label="Move"
      />
    </form>
  );
}
