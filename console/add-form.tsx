/** The form that adds a plant. */
import { signal } from "@preact/signals";
import { makeIdempotencyKey, type Plant, toRefusal } from "./api.ts";
import { Form, TextField } from "./form.tsx";
import { message } from "./message.ts";
import { Button, focus, onEscape } from "./parts.tsx";
import { api, garden } from "./state.ts";

export const isAdding = signal(false);
const form = new Form("add");
/**
 * The idempotency keys of drafts whose outcome is unknown. Sending a draft again, even after
 * another one, reuses its key, so it's stored once.
 */
const pendingKeys = new Map<string, string>();

export function openAdd(): void {
  isAdding.value = true;
  form.focusOn("name");
}

export function closeAdd(): void {
  isAdding.value = false;
  if (document.activeElement?.closest("#add")) focus("open-add");
}

export function AddForm() {
  return (
    <form
      id="add"
      class="card add"
      aria-label="Add a plant"
      autocomplete="off"
      hidden={!isAdding.value}
      onSubmit={(event) => form.submit(event, add)}
      onKeyDown={onEscape(closeAdd)}>
      <TextField form={form} field="name" label="Name" class="field grow" />
      <TextField form={form} field="tag" label="Tag" isOptional list="known-tags" />
      <TextField
        {...{ form, field: "id", label: "Id", placeholder: "automatic", isOptional: true }}
        pattern="\s*(-?\d+)?\s*"
        title="A whole number, or empty"
      />
      <div class="actions">
        <Button id="add-button" class="primary" type="submit" task={form.sending} label="Add" />
        <Button id="close-add" onClick={closeAdd} label="Close" />
      </div>
      <p id="add-error" class="error wide" role="alert">
        {form.errors.value.form}
      </p>
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
    form.reset();
    garden.showStored(plant, message`“${name}” was added with the id ${[plant.id]}.`);
    if (isAdding.value) form.focusOn("name");
  } catch (error) {
    // After a 5xx, the plant may be stored. A 429 says nothing about an earlier try.
    const status = toRefusal(error)?.status ?? 500;
    if (status < 500 && status !== 429) pendingKeys.delete(draftText);
    form.fail(error, "It’s safe to add it again: it will be stored once.");
  }
}
