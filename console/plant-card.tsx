/** One plant in a dialog, to read, edit or delete. */
import { useLayoutEffect } from "preact/hooks";
import type { Plant } from "./api.ts";
import { TextField } from "./form.tsx";
import { Button, Dialog, focus } from "./parts.tsx";
import { card, garden, session } from "./state.ts";

export function PlantCard() {
  const id = card.id.value;
  const { plant, lost, note, isEditing, isChanged } = card.shown.value;
  const [usual, other] = isEditing ? ["Cancel", "Discard yours"] : ["Close", "Keep it"];
  // What had the focus may be gone. After a conflict, Enter must neither delete nor save anything.
  useLayoutEffect(() => {
    const isOutside = !document.activeElement?.closest("#plant");
    if (id !== undefined && (isOutside || isChanged))
      focus(isEditing ? "edit-resume" : "plant-close");
  }, [plant, lost, isChanged]);
  return (
    <Dialog
      id="plant"
      class="card dialog plant"
      aria-labelledby="plant-title"
      isOpen={id !== undefined && session.isSignedIn.value}
      onLeave={() => void card.leave()}>
      <h2 id="plant-title">
        <bdi>{plant?.name ?? lost?.name ?? `Plant ${id}`}</bdi>
      </h2>
      {note && (
        <p id="plant-note" class="banner" role="alert">
          {note}
        </p>
      )}
      {isEditing && <EditForm />}
      {plant && !isEditing && (
        <dl>
          <dt>Tag</dt>
          <dd>
            <bdi>{plant.tag}</bdi>
          </dd>
          <dt>Id</dt>
          <dd>{String(plant.id)}</dd>
        </dl>
      )}
      <div class="actions">
        {isEditing ? (
          <EditActions />
        ) : (
          plant && garden.canWrite.value && <ViewActions plant={plant} />
        )}
        {lost && garden.canWrite.value && (
          <Button id="plant-again" onClick={() => card.addAgain(lost)} label="Add it again" />
        )}
        <Button id={isEditing ? "edit-cancel" : "plant-close"} onClick={() => card.close()}>
          {isChanged ? other : usual}
        </Button>
      </div>
    </Dialog>
  );
}

function ViewActions({ plant }: { plant: Plant }) {
  return (
    <>
      <Button id="plant-edit" class="primary" autofocus onClick={() => card.edit()} label="Edit" />
      <Button
        id="plant-delete"
        class="danger"
        task={card.deleting}
        onClick={() => card.delete(plant)}
        label={card.shown.value.isChanged ? "Delete it anyway" : "Delete"}
      />
    </>
  );
}

function EditForm() {
  const { form } = card;
  return (
    <form
      id="edit"
      class="edit"
      aria-labelledby="plant-title"
      autocomplete="off"
      onSubmit={(event) => form.submit(event, () => card.save())}>
      <TextField form={form} field="name" label="Name" />
      <TextField form={form} field="tag" label="Tag" isOptional list="known-tags" />
      <p class="error" role="alert">
        {form.errors.value.form}
      </p>
    </form>
  );
}

function EditActions() {
  const { form, shown } = card;
  const { plant, isChanged } = shown.value;
  return (
    <>
      {isChanged && (
        <Button id="edit-resume" class="primary" onClick={() => form.focusOn("name")}>
          Keep editing
        </Button>
      )}
      {plant && (
        <Button
          id="edit-save"
          form="edit"
          class={isChanged ? "" : "primary"}
          type="submit"
          task={form.sending}
          label={isChanged ? "Save yours instead" : "Save"}
        />
      )}
    </>
  );
}
