/** One plant in a dialog, to copy, edit or delete. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import type { EditedField } from "./api.ts";
import { TextField } from "./form.tsx";
import { message } from "./message.ts";
import { Button, Dialog, focus } from "./parts.tsx";
import { card, garden, session } from "./state.ts";

export function PlantCard() {
  const id = card.id.value;
  const { plant, lost, note, isEditing } = card.shown.value;
  return (
    <Dialog
      id="plant"
      class="card dialog plant"
      aria-labelledby="plant-title"
      isOpen={id !== undefined && session.isSignedIn.value}
      onLeave={() => void card.leave()}>
      <h2 id="plant-title">
        <bdi id="plant-name">{plant?.name ?? lost?.name ?? `Plant ${id}`}</bdi>
      </h2>
      {note && (
        <p id="plant-note" class="banner" role="alert">
          {note}
        </p>
      )}
      {isEditing ? <EditForm /> : <PlantView />}
    </Dialog>
  );
}

function PlantView() {
  const { plant, isChanged } = card.shown.value;
  // What had the focus may be gone, and after a conflict Enter must not delete anything.
  useLayoutEffect(() => {
    const isOutside = !document.activeElement?.closest("#plant");
    if (card.id.value !== undefined && (isOutside || isChanged)) focus("plant-close");
  }, [plant, isChanged]);
  return (
    <div id="plant-view">
      {plant && (
        <dl id="plant-fields">
          <dt>Tag</dt>
          <dd>
            <bdi id="plant-tag">{plant.tag}</bdi>
          </dd>
          <dt>Id</dt>
          <dd id="plant-id">{String(plant.id)}</dd>
          <dt>Copy</dt>
          <CopyButtons key={plant.id} hasTag={plant.tag !== ""} />
        </dl>
      )}
      <div class="actions">
        {plant && garden.canWrite.value && (
          <>
            <Button id="plant-edit" class="primary" autofocus onClick={() => card.edit()}>
              Edit
            </Button>
            <Button
              id="plant-delete"
              class="danger"
              task={card.deleting}
              onClick={() => card.delete(plant)}
              label={isChanged ? "Delete it anyway" : "Delete"}
            />
          </>
        )}
        <AddAgain />
        <Button id="plant-close" onClick={() => card.close()}>
          {isChanged ? "Keep it" : "Close"}
        </Button>
      </div>
    </div>
  );
}

/** Somebody else deleted the plant. */
function AddAgain() {
  const { lost } = card.shown.value;
  if (!lost || !garden.canWrite.value) return null;
  return (
    <Button id="plant-again" onClick={() => card.addAgain(lost)}>
      Add it again
    </Button>
  );
}

function CopyButtons({ hasTag }: { hasTag: boolean }) {
  const note = useSignal("");
  return (
    <dd class="actions">
      {["name", "tag", "id"].map((field) => {
        const copyField = () => {
          const isCopied = copy(document.getElementById(`plant-${field}`) as HTMLElement);
          note.value = isCopied ? `The ${field} was copied.` : "Press Ctrl+C or ⌘C to copy it.";
        };
        const name = field.slice(0, 1).toUpperCase() + field.slice(1);
        const label = [<span class="unseen">Copy the </span>, name];
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

/** Browsers deny `navigator.clipboard` to pages loaded over plain HTTP. */
function copy(element: HTMLElement): boolean {
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

function EditForm() {
  const { form } = card;
  const { plant, theirs } = card.shown.value;
  const hasConflict = theirs !== undefined;
  // If somebody presses Enter again, neither version is lost.
  useLayoutEffect(() => {
    if (hasConflict) focus("edit-resume");
  }, [theirs]);
  const describe = (field: EditedField) => {
    const text = theirs?.[field];
    if (text === undefined) return "";
    return text === "" ? "Theirs: none" : message`Theirs: “${text}”`;
  };
  return (
    <form
      id="edit"
      class="edit"
      aria-labelledby="plant-title"
      noValidate
      autocomplete="off"
      onSubmit={(event) => form.submit(event, () => card.save())}>
      <TextField form={form} field="name" label="Name" theirs={describe("name")} />
      <TextField
        {...{ form, field: "tag", label: "Tag", theirs: describe("tag") }}
        isOptional
        list="known-tags"
      />
      <p id="edit-error" class="error" role="alert">
        {form.errors.value.form}
      </p>
      <div class="actions">
        {hasConflict && (
          <Button id="edit-resume" class="primary" onClick={() => form.focusOn("name")}>
            Keep editing
          </Button>
        )}
        {plant && (
          <Button
            id="edit-save"
            class={hasConflict ? "" : "primary"}
            type="submit"
            task={form.sending}
            label={hasConflict ? "Save yours instead" : "Save"}
          />
        )}
        <AddAgain />
        <Button id="edit-cancel" onClick={() => card.close()}>
          {hasConflict ? "Discard yours" : "Cancel"}
        </Button>
      </div>
    </form>
  );
}
