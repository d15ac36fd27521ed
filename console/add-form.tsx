/** The first row of the table while somebody adds plants. */
import { signal } from "@preact/signals";
import { place } from "./address.ts";
import { makeIdempotencyKey, type Plant, toRefusal } from "./api.ts";
import { Form, TextField } from "./form.tsx";
import { message, warn } from "./message.ts";
import { Button, focus, Key, onEscape } from "./parts.tsx";
import { api, garden } from "./state.ts";

export const isAdding = signal(false);
const isIdShown = signal(false);
const form = new Form("add");
/**
 * The idempotency keys of drafts whose outcome is unknown. Sending a draft again, even after
 * another one, reuses its key, so it's stored once.
 */
const pendingKeys = new Map<string, string>();

export function openAdd(): void {
  if (!isAdding.value) empty();
  isAdding.value = true;
  form.focusOn("name");
}

/** A plant that is added to the list of a tag probably has it. */
function empty(): void {
  form.reset({ tag: place.value.tag ?? "" });
}

export function closeAdd(): void {
  isAdding.value = false;
  if (document.activeElement?.closest("#add")) focus("open-add");
}

function chooseId(): void {
  isIdShown.value = true;
  form.focusOn("id");
}

export function AddForm() {
  return (
    <form
      id="add"
      class="fields"
      aria-label="Add a plant"
      autocomplete="off"
      onSubmit={(event) => form.submit(event, add)}
      onKeyDown={onEscape((event) => {
        event.stopPropagation();
        closeAdd();
      })}>
      <TextField form={form} field="name" label="Name" placeholder="Name" isLong />
      <TextField
        {...{ form, field: "tag", label: "Tag", list: "known-tags", placeholder: "Tag, if any" }}
        isOptional
      />
      {isIdShown.value && (
        <TextField
          {...{ form, field: "id", label: "Id", placeholder: "Id, if you like" }}
          isOptional
          pattern="\s*(-?\d+)?\s*"
          title="A whole number, or empty"
        />
      )}
      <p id="add-error" class="error wide" role="alert">
        {form.errors.value.form}
      </p>
      <div class="actions wide">
        <Button id="add-button" class="primary" type="submit" task={form.sending} label="Add" />
        <Button id="close-add" onClick={closeAdd} label="Done" />
        <span class="hint if-keys">
          <Key name="Enter" /> adds it, <Key name="Esc" /> leaves
        </span>
        {!isIdShown.value && (
          <Button id="choose-id" class="link" onClick={chooseId} label="Choose an id" />
        )}
      </div>
    </form>
  );
}

async function add(): Promise<void> {
  const { name, tag, id } = form.values.value;
  const draft = { name, tag, id: id.trim() === "" ? undefined : BigInt(id) } satisfies Record<
    keyof Plant,
    unknown
  >;
  const draftText = JSON.stringify(form.values.value);
  const idempotencyKey = pendingKeys.get(draftText) ?? makeIdempotencyKey();
  pendingKeys.set(draftText, idempotencyKey);
  try {
    const plant = await api.create(draft, { idempotencyKey });
    pendingKeys.delete(draftText);
    empty();
    garden.showAdded(plant);
    if (isAdding.value) form.focusOn("name");
  } catch (error) {
    // After a 5xx, the plant may be stored. A 429 says nothing about an earlier try.
    const status = toRefusal(error)?.status ?? 500;
    if (status < 500 && status !== 429) pendingKeys.delete(draftText);
    const isShown = isAdding.value && JSON.stringify(form.values.value) === draftText;
    if (isShown) form.fail(error, "It’s safe to add it again: it will be stored once.");
    else warn(message`“${name}” may not have been added.`, error);
  }
}
