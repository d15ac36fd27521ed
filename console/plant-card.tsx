/** One plant in a dialog, to copy, edit or delete. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { editedFields } from "./api.ts";
import { message } from "./message.ts";
import { Button, Dialog, TextField, Words } from "./parts.tsx";
import { card, garden } from "./state.ts";

export function PlantCard() {
  const { id, plant, lost, note, isEditing } = card;
  const isOpen = id.value !== undefined;
  return (
    <Dialog
      id="plant"
      class="card dialog plant"
      aria-labelledby="plant-title"
      isOpen={isOpen}
      onLeave={() => void card.leave()}>
      <h2 id="plant-title">
        <bdi id="plant-name">{plant.value?.name ?? lost.value?.name ?? `Plant ${id.value}`}</bdi>
      </h2>
      {note.value.length > 0 && (
        <p id="plant-note" class="banner" role="alert">
          <Words text={note.value} />
        </p>
      )}
      {isEditing.value ? <EditForm /> : <PlantView />}
    </Dialog>
  );
}

function PlantView() {
  const { plant, isChanged } = card;
  const shown = plant.value;
  const closer = useRef<HTMLButtonElement>(null);
  // What had the focus may be gone, and after a conflict Enter must not delete anything.
  useLayoutEffect(() => {
    const isOutside = !document.activeElement?.closest("#plant");
    if (card.id.value !== undefined && (isOutside || isChanged.value)) closer.current?.focus();
  }, [shown, isChanged.value]);
  return (
    <div id="plant-view">
      {shown && (
        <dl id="plant-fields">
          <dt>Tag</dt>
          <dd>
            <bdi id="plant-tag">{shown.tag}</bdi>
          </dd>
          <dt>Id</dt>
          <dd id="plant-id">{String(shown.id)}</dd>
          <dt>Copy</dt>
          <CopyButtons key={shown.id} hasTag={shown.tag !== ""} />
        </dl>
      )}
      <div class="actions">
        {shown && garden.canWrite.value && (
          <>
            <Button
              id="plant-edit"
              class="primary writing"
              autofocus
              onClick={() => card.edit()}
              label="Edit"
            />
            <Button
              id="plant-delete"
              class="danger writing"
              isBusy={card.isDeleting.value}
              onClick={() => void card.delete(shown)}
              label={isChanged.value ? "Delete it anyway" : "Delete"}
            />
          </>
        )}
        <AddAgain />
        <Button
          id="plant-close"
          ref={closer}
          onClick={() => card.close()}
          label={isChanged.value ? "Keep it" : "Close"}
        />
      </div>
    </div>
  );
}

/** Somebody else deleted the plant. */
function AddAgain() {
  if (!card.lost.value || !garden.canWrite.value) return null;
  return (
    <Button
      id="plant-again"
      class="writing"
      onClick={() => void card.addAgain()}
      label="Add it again"
    />
  );
}

function CopyButtons({ hasTag }: { hasTag: boolean }) {
  const note = useSignal("");
  return (
    <dd class="actions">
      {(["name", "tag", "id"] as const).map((field) => {
        const name = field[0]?.toUpperCase() + field.slice(1);
        const label = [<span class="unseen">Copy the </span>, name];
        const copyField = () => {
          const isCopied = copy(document.getElementById(`plant-${field}`));
          note.value = isCopied ? `The ${field} was copied.` : "Press Ctrl+C or ⌘C to copy it.";
        };
        const isAbsent = field === "tag" && !hasTag;
        return (
          <Button id={`copy-${field}`} label={label} disabled={isAbsent} onClick={copyField} />
        );
      })}
      <span id="copy-note" class="note" role="status">
        {note.value}
      </span>
    </dd>
  );
}

function EditForm() {
  const { form, plant, theirs } = card;
  const resume = useRef<HTMLButtonElement>(null);
  const hasConflict = theirs.value !== undefined;
  // If somebody presses Enter again, neither version is lost.
  useLayoutEffect(() => {
    if (hasConflict) resume.current?.focus();
  }, [theirs.value]);
  const submit = (event: Event) => {
    event.preventDefault();
    void form.submit(() => card.save());
  };
  const describe = (field: (typeof editedFields)[number]) => {
    const text = theirs.value?.[field];
    if (text === undefined) return "";
    return text === "" ? "Theirs: none" : <Words text={message`Theirs: “${text}”`} />;
  };
  const shared = { form, prefix: "edit" };
  return (
    <form
      id="edit"
      class="edit"
      aria-labelledby="plant-title"
      noValidate
      autocomplete="off"
      onSubmit={submit}>
      <TextField {...shared} field="name" label="Name" theirs={describe("name")} />
      <TextField
        {...shared}
        field="tag"
        label="Tag"
        isOptional
        list="known-tags"
        theirs={describe("tag")}
      />
      <p id="edit-error" class="error" role="alert">
        {form.error.value}
      </p>
      <div class="actions">
        {hasConflict && (
          <Button
            id="edit-resume"
            class="primary"
            ref={resume}
            onClick={() => form.focusOn("name")}
            label="Keep editing"
          />
        )}
        {plant.value && (
          <Button
            id="edit-save"
            class={hasConflict ? "" : "primary"}
            type="submit"
            isBusy={form.isBusy.value}
            label={hasConflict ? "Save yours instead" : "Save"}
          />
        )}
        <AddAgain />
        <Button
          id="edit-cancel"
          onClick={() => card.close()}
          label={hasConflict ? "Discard yours" : "Cancel"}
        />
      </div>
    </form>
  );
}

/** Browsers deny `navigator.clipboard` to pages loaded over plain HTTP. */
function copy(element: HTMLElement | null): boolean {
  if (!element) return false;
  getSelection()?.selectAllChildren(element);
  // Copying the selection itself would lose some white space.
  const setText = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", element.textContent);
    event.preventDefault();
  };
  document.addEventListener("copy", setText, { once: true });
  const isCopied = document.execCommand("copy");
  document.removeEventListener("copy", setText);
  return isCopied;
}
