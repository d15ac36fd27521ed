/** One plant in full, in a dialog: buttons that copy its fields, and a form that changes them. */
import { type Api, describeError, type Plant, type StoredPlant, toRefusal } from "./api.ts";
import { find, message, notify, show } from "./elements.ts";
import { FormFields } from "./form-fields.ts";

const fields = ["id", "name", "tag"] as const;
const editedFields = ["name", "tag"] as const;

const gone = "Somebody deleted this plant in the meantime.";
const changed = "Somebody changed this plant in the meantime.";
const retry = "It may have been saved all the same. It’s safe to save again.";

export interface CardEvents {
  readonly api: () => Api;
  /** What the service has now; without a plant, it was deleted. */
  readonly onRead: (id: bigint, plant: Plant | undefined) => void;
  readonly onSaved: (plant: Plant) => void;
  readonly onClosed: (id: bigint) => void;
  /** True if the page has handled the error, and the card need not show it. */
  readonly onError: (error: unknown) => boolean;
}

export class PlantCard {
  readonly #events: CardEvents;
  readonly #dialog = find<HTMLDialogElement>("plant");
  readonly #form = find<HTMLFormElement>("edit");
  readonly #inputs = new FormFields("edit", editedFields);
  readonly #editButton = find<HTMLButtonElement>("plant-edit");
  readonly #saveButton = find<HTMLButtonElement>("edit-save");
  readonly #cancelButton = find<HTMLButtonElement>("edit-cancel");
  /** The plant in the dialog; absent while that is closed. */
  #plant: Plant | undefined;
  /** What the service had when somebody last looked at it here. */
  #etag = "";

  constructor(events: CardEvents) {
    this.#events = events;
    for (const button of [find("plant-close"), this.#cancelButton]) {
      button.addEventListener("click", () => this.close());
    }
    this.#dialog.addEventListener("close", () => {
      const id = this.#plant?.id;
      this.#plant = undefined;
      if (id !== undefined) events.onClosed(id);
    });
    this.#editButton.addEventListener("click", () => void this.#edit());
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#save();
    });
    for (const field of fields) {
      find(`copy-${field}`).addEventListener("click", () => {
        const isCopied = copy(find(`plant-${field}`));
        const copied = `The ${field} was copied.`;
        find("plant-note").textContent = isCopied ? copied : "Press Ctrl+C or ⌘C to copy it.";
      });
    }
  }

  open(plant: Plant): void {
    this.#plant = plant;
    for (const field of fields) find(`plant-${field}`).textContent = String(plant[field]);
    find<HTMLButtonElement>("copy-tag").disabled = plant.tag === "";
    find("plant-note").textContent = "";
    this.#editButton.disabled = false;
    this.#showForm(false);
    this.#dialog.showModal();
  }

  close(): void {
    this.#dialog.close();
  }

  #showForm(isShown: boolean): void {
    show(this.#form, isShown);
    show(find("plant-view"), !isShown);
  }

  /** Starts from what the service has now: the list may be old. */
  async #edit(): Promise<void> {
    const opened = this.#plant;
    if (!opened) return;
    this.#editButton.disabled = true;
    try {
      const plant = await this.#read(opened.id);
      if (opened !== this.#plant) return;
      if (!plant) {
        find("plant-note").textContent = gone;
        return;
      }
      this.#plant = plant;
      this.#etag = plant.etag;
      for (const field of editedFields) this.#inputs.input(field).value = plant[field];
      this.#inputs.showErrors([]);
      this.#ask("", "Save", "Cancel");
      this.#showForm(true);
      this.#inputs.input("name").focus();
    } catch (error) {
      if (this.#events.onError(error) || opened !== this.#plant) return;
      find("plant-note").textContent = describeError(error);
      this.#editButton.disabled = false;
    }
  }

  async #save(): Promise<void> {
    const opened = this.#plant;
    // The Enter key submits a form whose button is hidden, too.
    if (!opened || this.#saveButton.disabled || this.#saveButton.hidden) return;
    const mine = { id: opened.id, name: this.#typed("name"), tag: this.#typed("tag") };
    this.#inputs.showErrors([]);
    this.#saveButton.disabled = true;
    try {
      const stored = await this.#put(mine);
      const isOpen = opened === this.#plant;
      if (stored?.name === mine.name && stored.tag === mine.tag) {
        if (isOpen) this.close();
        this.#events.onSaved(stored);
      } else if (isOpen) this.#showConflict(stored);
      else notify(message`“${mine.name}” was not saved. ${stored ? changed : gone}`, "trouble");
    } catch (error) {
      if (this.#events.onError(error)) return;
      if (opened === this.#plant) this.#inputs.showFailure(error, retry);
      else notify(message`“${mine.name}” may not have been saved.`, "trouble");
    } finally {
      this.#saveButton.disabled = false;
    }
  }

  /** An input drops line breaks, so a field that nobody touched is kept as it was. */
  #typed(field: (typeof editedFields)[number]): string {
    const { value } = this.#inputs.input(field);
    const before = this.#plant?.[field] ?? "";
    return value === before.replace(/[\r\n]/g, "") ? before : value;
  }

  /** Resolves to what the service has then: mine, somebody else's version, or no plant. */
  async #put(mine: Plant): Promise<StoredPlant | undefined> {
    try {
      return await this.#events.api().put(mine, this.#etag);
    } catch (error) {
      if (toRefusal(error)?.code !== "precondition-failed") throw error;
      return this.#read(mine.id);
    }
  }

  async #read(id: bigint): Promise<StoredPlant | undefined> {
    const plant = await this.#events.api().find(id);
    this.#events.onRead(id, plant);
    return plant;
  }

  /** The next save replaces this version and no later one. */
  #showConflict(theirs: StoredPlant | undefined): void {
    if (theirs) {
      this.#etag = theirs.etag;
      const question = `${changed} Which version should stay?`;
      this.#ask(question, "Save yours instead", "Keep theirs", theirs);
    } else this.#ask(`${gone} Your changes weren’t saved.`, "", "Close");
    // So that Enter, pressed once more, replaces nothing.
    this.#cancelButton.focus();
  }

  /** What to do with the form: without a label there is nothing to save. */
  #ask(note: string, save: string, cancel: string, theirs?: Plant): void {
    for (const field of editedFields) {
      const value = theirs?.[field];
      const text = value ? message`Theirs: “${value}”` : "Theirs: none";
      find(`edit-${field}-theirs`).replaceChildren(theirs ? text : "");
    }
    find("edit-note").textContent = note;
    show(find("edit-note"), note !== "");
    this.#saveButton.textContent = save;
    show(this.#saveButton, save !== "");
    this.#cancelButton.textContent = cancel;
  }
}

/** Not `navigator.clipboard`, which browsers deny to pages loaded over plain HTTP. */
function copy(element: HTMLElement): boolean {
  getSelection()?.selectAllChildren(element);
  // The text as it is: a selection would lose some white space.
  const setText = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", element.textContent);
    event.preventDefault();
  };
  document.addEventListener("copy", setText, { once: true });
  const isCopied = document.execCommand("copy");
  document.removeEventListener("copy", setText);
  return isCopied;
}
