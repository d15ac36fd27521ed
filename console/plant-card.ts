/** One plant in a dialog, to copy, edit or delete. */
import {
  Conflict,
  describeError,
  editedFields,
  isSame,
  type Plant,
  type PlantEvent,
  type StoredPlant,
} from "./api.ts";
import { find, message, notify, show, whileBusy } from "./elements.ts";
import { FormFields } from "./form-fields.ts";
import { describeChange } from "./garden-words.ts";
import { api } from "./session.ts";

const fields = ["id", "name", "tag"] as const;

const retry = "It may have been saved all the same. It’s safe to save again.";

interface CardEvents {
  /** What the service has now. Without a plant, it was deleted. */
  readonly onRead: (id: bigint, plant: Plant | undefined) => void;
  /** `isMerged` if it includes somebody else's change of another field. */
  readonly onSaved: (plant: Plant, isMerged: boolean) => void;
  readonly onDeleted: (plant: Plant) => void;
  /** The card shows this plant now, or none if it was closed. */
  readonly onMove: (id: bigint | undefined) => void;
  readonly onClosed: (id: bigint) => void;
}

export class PlantCard {
  readonly #events: CardEvents;
  readonly #dialog = find<HTMLDialogElement>("plant");
  readonly #form = find<HTMLFormElement>("edit");
  readonly #inputs = new FormFields("edit", editedFields);
  readonly #deleteButton = find<HTMLButtonElement>("plant-delete");
  readonly #closeButton = find("plant-close");
  readonly #saveButton = find<HTMLButtonElement>("edit-save");
  #id: bigint | undefined;
  /** The plant as the card last showed it. Absent until it is read, and after it was deleted. */
  #plant: Plant | undefined;

  constructor(events: CardEvents) {
    this.#events = events;
    for (const button of [this.#closeButton, find("edit-cancel")]) {
      button.addEventListener("click", () => this.close());
    }
    this.#dialog.addEventListener("close", () => {
      const id = this.#id;
      // Signing in again opens the card once more, with what somebody typed.
      if (id === undefined || find("garden").hidden) return;
      this.#id = undefined;
      events.onMove(undefined);
      events.onClosed(id);
    });
    find("plant-edit").addEventListener("click", () => this.#edit());
    find("edit-resume").addEventListener("click", () => this.#inputs.input("name").focus());
    this.#deleteButton.addEventListener("click", () => {
      const plant = this.#plant;
      if (plant) void whileBusy(this.#deleteButton, () => this.delete(plant));
    });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void whileBusy(this.#saveButton, () => this.#save());
    });
    for (const field of fields) {
      find(`copy-${field}`).addEventListener("click", () => {
        const isCopied = copy(find(`plant-${field}`));
        const copied = `The ${field} was copied.`;
        find("copy-note").textContent = isCopied ? copied : "Press Ctrl+C or ⌘C to copy it.";
      });
    }
  }

  /** Absent while the card is closed. */
  get id(): bigint | undefined {
    return this.#id;
  }

  /** Shows what the page knows at once, and then what the service has. */
  async open(id: bigint, known: Plant | undefined): Promise<void> {
    this.#id = id;
    this.#show(known);
    if (!this.#dialog.open) this.#dialog.showModal();
    try {
      const plant = await api.find(id);
      this.#events.onRead(id, plant);
      // Shown only if there is no plant.
      const note = known && !plant ? await this.#explain(id, true) : `There is no plant ${id}.`;
      if (this.#id !== id || !this.#form.hidden) return;
      if (!plant) this.#show(undefined, note);
      else if (!known || !isSame(plant, known)) this.#show(plant);
    } catch (error) {
      if (this.#id !== id || !this.#form.hidden) return;
      this.#show(known, describeError(error));
    }
  }

  /** Shows what others changed, unless somebody is editing. */
  follow(events: readonly PlantEvent[]): void {
    const event = events.findLast(({ plant }) => plant.id === this.#id);
    const before = this.#plant;
    if (!event || !before || !this.#form.hidden) return;
    if (event.type === "plant.deleted") this.#show(undefined, describeChange(true, event));
    else if (!isSame(event.plant, before)) this.#show(event.plant);
    if (!this.#dialog.contains(document.activeElement)) this.#closeButton.focus();
  }

  close(): void {
    this.#dialog.close();
  }

  /**
   * Deletes the plant if it is still what the page showed. Otherwise shows what it is now, and the
   * same button deletes that.
   */
  async delete(plant: Plant): Promise<void> {
    const { onRead, onDeleted } = this.#events;
    try {
      await api.deleteShown(plant);
      this.#leave(plant.id);
      onDeleted(plant);
    } catch (error) {
      if (error instanceof Conflict) {
        onRead(plant.id, error.theirs);
        const note = await this.#explain(plant.id, !error.theirs);
        if (error.theirs) this.#showChanged(plant, error.theirs, note);
        else {
          this.#leave(plant.id);
          notify(message`“${plant.name}” had already been deleted. ${note}`);
        }
      } else {
        const why = describeError(error);
        notify(message`“${plant.name}” may not have been deleted. ${why}`, "trouble");
      }
    }
  }

  /** Who changed or deleted the plant. */
  async #explain(id: bigint, isGone: boolean): Promise<Node> {
    return describeChange(isGone, await api.lastChange(id));
  }

  #showChanged(plant: Plant, theirs: Plant, note: Node): void {
    this.#events.onMove(plant.id);
    const tag = plant.tag === "" ? "" : message`, tagged “${plant.tag}”`;
    this.#show(theirs, message`${note} It was “${plant.name}”${tag}.`);
    this.#deleteButton.textContent = "Delete it anyway";
    this.#closeButton.textContent = "Keep it";
    this.#closeButton.focus();
  }

  #leave(id: bigint): void {
    if (this.#id !== id) return;
    this.#id = undefined;
    this.close();
    this.#events.onMove(undefined);
  }

  #show(plant: Plant | undefined, note: string | Node = ""): void {
    this.#plant = plant;
    for (const field of fields) find(`plant-${field}`).textContent = String(plant?.[field] ?? "");
    if (!plant) find("plant-name").textContent = `Plant ${this.#id}`;
    find<HTMLButtonElement>("copy-tag").disabled = !plant?.tag;
    find("copy-note").textContent = "";
    this.#showNote(note);
    for (const id of ["plant-fields", "plant-edit", "plant-delete"])
      show(find(id), plant !== undefined);
    this.#deleteButton.textContent = "Delete";
    this.#closeButton.textContent = "Close";
    show(this.#form, false);
    show(find("plant-view"), true);
  }

  #showNote(note: string | Node): void {
    find("plant-note").replaceChildren(note);
    show(find("plant-note"), note !== "");
  }

  #edit(): void {
    const plant = this.#plant;
    if (!plant) return;
    for (const field of editedFields) this.#inputs.input(field).value = plant[field];
    this.#inputs.showErrors([]);
    this.#ask("", "Save");
    show(find("plant-view"), false);
    show(this.#form, true);
    this.#inputs.input("name").focus();
  }

  async #save(): Promise<void> {
    const base = this.#plant;
    // Enter submits the form even if its button is hidden.
    if (!base || this.#saveButton.hidden) return;
    const { id } = base;
    const mine = { id, name: this.#typed("name"), tag: this.#typed("tag") };
    this.#inputs.showErrors([]);
    try {
      const saved = await api.save(base, mine);
      if (this.#id === id) this.close();
      this.#events.onSaved(saved, !isSame(saved, mine));
    } catch (error) {
      if (this.#id !== id) {
        const why = describeError(error);
        notify(message`“${mine.name}” may not have been saved. ${why}`, "trouble");
      } else if (error instanceof Conflict) {
        this.#events.onRead(id, error.theirs);
        const note = await this.#explain(id, !error.theirs);
        this.#showConflict(base, mine, error.theirs, note);
      } else this.#inputs.showFailure(error, retry);
    }
  }

  /** Inputs drop line breaks. A field that nobody touched keeps its own. */
  #typed(field: (typeof editedFields)[number]): string {
    const { value } = this.#inputs.input(field);
    const before = this.#plant?.[field] ?? "";
    return value === before.replace(/[\r\n]/g, "") ? before : value;
  }

  /** The next save replaces their version, and no later one. What only they changed stays. */
  #showConflict(base: Plant, mine: Plant, theirs: StoredPlant | undefined, note: Node): void {
    if (theirs) {
      this.#plant = theirs;
      this.#ask(message`${note} Which version should stay?`, "Save yours instead");
      for (const field of editedFields) {
        if (mine[field] === base[field]) this.#inputs.input(field).value = theirs[field];
        else if (mine[field] !== theirs[field]) {
          const text = theirs[field] === "" ? "Theirs: none" : message`Theirs: “${theirs[field]}”`;
          find(`edit-${field}-theirs`).replaceChildren(text);
        }
      }
    } else this.#ask(message`${note} Your changes aren’t saved.`, "");
    // If somebody presses Enter again, neither version is lost.
    find("edit-resume").focus();
  }

  /** Says what to do with the form. Without a label for it, there is no Save button. */
  #ask(note: Node | "", save: string): void {
    for (const field of editedFields) find(`edit-${field}-theirs`).textContent = "";
    this.#showNote(note);
    show(find("edit-resume"), note !== "");
    this.#saveButton.textContent = save;
    show(this.#saveButton, save !== "");
    this.#saveButton.classList.toggle("primary", note === "");
    find("edit-cancel").textContent = note === "" ? "Cancel" : "Discard yours";
  }
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
