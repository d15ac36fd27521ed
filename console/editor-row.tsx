/** The fields of the plant that is being edited, in its row, and what has to be decided there. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { describeFinding, type Finding } from "./editor.ts";
import { TextField } from "./form.tsx";
import { announce } from "./message.ts";
import { Button, focus, isTyping, Key, onEscape } from "./parts.tsx";
import { editor, garden } from "./state.ts";

export function EditorRow() {
  const { form, editing, deleting } = editor;
  const { base, finding } = editing.value ?? {};
  // Runs again when the list has loaded and the fields move from above it into their row.
  useLayoutEffect(() => {
    const field = document.getElementById(`edit-${editor.firstField}`);
    field?.focus();
    // Typing replaces it, and an arrow key keeps it.
    (field as HTMLInputElement | null)?.select();
    editor.firstField = "name";
  }, []);
  if (!base) return null;
  const canWrite = garden.canWrite.value;
  return (
    <form
      id="edit"
      class="fields"
      aria-label={`Edit ${base.name}`}
      autocomplete="off"
      noValidate
      onSubmit={(event) => form.submit(event, () => editor.save())}
      onKeyDown={onEscape((event) => {
        event.stopPropagation();
        editor.leave();
      })}>
      <TextField form={form} field="name" label="Name" isLong readOnly={!canWrite} />
      <TextField
        {...{ form, field: "tag", label: "Tag", list: "known-tags", placeholder: "No tag" }}
        isOptional
        readOnly={!canWrite}
      />
      <span class="number">{String(base.id)}</span>
      <p class="error wide" role="alert">
        {form.errors.value.form}
      </p>
      {finding ? (
        <Decision finding={finding} />
      ) : (
        <div class="actions wide">
          {canWrite && (
            <>
              <Button id="edit-save" class="primary" type="submit" task={form.sending}>
                Save
              </Button>
              <Button id="edit-close" onClick={() => editor.leave()} label="Cancel" />
              <span class="hint if-keys">
                <Key name="Enter" /> saves, <Key name="Esc" /> leaves
              </span>
              <Button
                id="plant-delete"
                class="danger"
                task={deleting}
                onClick={() => editor.delete(base)}
                label="Delete plant"
              />
            </>
          )}
          {!canWrite && <Button id="edit-close" onClick={() => editor.leave()} label="Close" />}
        </div>
      )}
    </form>
  );
}

/** Has the focus itself, so that Enter chooses neither of its buttons. */
function Decision({ finding }: { finding: Finding }) {
  const { text, changes } = describeFinding(finding);
  useLayoutEffect(() => {
    // Others can delete the plant at any moment, while somebody types.
    if (finding.kind === "deleted" && isTyping()) announce(text);
    else focus("finding");
  }, [finding]);
  return (
    <div
      id="finding"
      class="finding wide"
      role="alertdialog"
      aria-labelledby="finding-text"
      tabIndex={-1}>
      <p id="finding-text">
        {text}{" "}
        {changes.map(({ field, before, after }) => (
          <span key={field} class="change">
            {field === "tag" && "tag "}
            <del>{before || "none"}</del> → <ins>{after || "none"}</ins>{" "}
          </span>
        ))}
      </p>
      <div class="actions">{renderChoices(finding)}</div>
    </div>
  );
}

function renderChoices(finding: Finding): ComponentChildren {
  const { form, deleting } = editor;
  const close = (label: string) => (
    <Button id="keep-theirs" onClick={() => editor.close()} label={label} />
  );
  if (finding.kind === "unsaved") {
    return (
      <>
        <Button id="edit-discard" onClick={() => editor.discard()} label="Discard it" />
        <Button id="edit-resume" class="primary" onClick={() => editor.resume()}>
          Keep editing
        </Button>
      </>
    );
  }
  const canWrite = garden.canWrite.value;
  if (finding.kind === "deleted") {
    return (
      <>
        {close(canWrite ? "Leave it deleted" : "Close")}
        {canWrite && (
          <Button
            id="plant-again"
            class="primary"
            task={form.sending}
            onClick={(event) => form.submit(event, () => editor.addAgain())}
            label="Add it again"
          />
        )}
      </>
    );
  }
  if (finding.about === "save") {
    return (
      <>
        {close("Keep theirs")}
        <Button
          id="save-mine"
          class="primary"
          type="submit"
          task={form.sending}
          label="Save mine"
        />
      </>
    );
  }
  return (
    <>
      {close("Keep it")}
      <Button
        id="delete-anyway"
        class="danger"
        task={deleting}
        onClick={() => editor.delete(finding.after)}
        label="Delete it anyway"
      />
    </>
  );
}
