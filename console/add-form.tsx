/** The form that adds a plant. */
import { makeIdempotencyKey, toRefusal } from "./api.ts";
import { Form } from "./form.ts";
import { Button, TextField } from "./parts.tsx";
import { api, garden, isAdding } from "./state.ts";

const form = new Form(["name", "tag", "id"]);
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
  form.clearErrors();
  const isInside = document.activeElement?.closest("#add");
  if (isInside) document.getElementById("open-add")?.focus();
}

export function AddForm() {
  const submit = (event: Event) => {
    event.preventDefault();
    void form.submit(add);
  };
  return (
    <form
      id="add"
      class="card add"
      aria-label="Add a plant"
      noValidate
      autocomplete="off"
      hidden={!isAdding.value}
      onSubmit={submit}
      onKeyDown={({ key }) => key === "Escape" && closeAdd()}>
      <TextField form={form} prefix="add" field="name" label="Name" isWide />
      <TextField form={form} prefix="add" field="tag" label="Tag" isOptional list="known-tags" />
      <TextField
        {...{ form, prefix: "add", field: "id", label: "Id" }}
        isOptional
        inputMode="numeric"
        placeholder="automatic"
      />
      <div class="actions">
        <Button
          id="add-button"
          class="primary"
          type="submit"
          isBusy={form.isBusy.value}
          label="Add"
        />
        <Button id="close-add" onClick={closeAdd} label="Close" />
      </div>
      <p id="add-error" class="error wide" role="alert">
        {form.error.value}
      </p>
    </form>
  );
}

async function add(): Promise<void> {
  const { name, tag, id } = form.values.value;
  form.clearErrors();
  if (!/^\s*(?:-?\d+)?\s*$/.test(id)) {
    return form.showError("id", "Must be a whole number, or empty.");
  }
  const draft = { name, tag, id: id.trim() === "" ? undefined : BigInt(id) };
  const draftText = JSON.stringify([name, tag, id]);
  const key = pendingKeys.get(draftText) ?? makeIdempotencyKey();
  pendingKeys.set(draftText, key);
  try {
    const plant = await api.create(draft, { idempotencyKey: key });
    pendingKeys.clear();
    form.reset();
    garden.showAdded(plant);
    if (isAdding.value) form.focusOn("name");
  } catch (error) {
    if (isOutcomeKnown(error)) pendingKeys.delete(draftText);
    form.fail(error, "It’s safe to add it again: it will be stored once.");
  }
}

/** After a 5xx, the plant may be stored. A 429 says nothing about an earlier try. */
function isOutcomeKnown(error: unknown): boolean {
  const status = toRefusal(error)?.status ?? 500;
  return status < 500 && status !== 429;
}
