/** The form that adds a plant. */
import { type Host, makeIdempotencyKey, type Plant, toRefusal } from "./api.ts";
import { find, show, whileBusy } from "./elements.ts";
import { FormFields } from "./form-fields.ts";

export interface AddEvents extends Host {
  readonly onAdded: (plant: Plant) => void;
}

export class AddForm {
  readonly #events: AddEvents;
  readonly #form = find<HTMLFormElement>("add");
  readonly #fields = new FormFields("add", ["name", "tag", "id"]);
  readonly #opener = find("open-add");
  readonly #button = find<HTMLButtonElement>("add-button");
  /**
   * Idempotency keys of drafts whose outcome is unknown. Sending one again, even after another,
   * reuses its key, so that it is stored once.
   */
  readonly #pendingKeys = new Map<string, string>();

  constructor(events: AddEvents) {
    this.#events = events;
    this.#opener.addEventListener("click", () => (this.#form.hidden ? this.open() : this.close()));
    find("close-add").addEventListener("click", () => this.close());
    this.#form.addEventListener("keydown", ({ key }) => key === "Escape" && this.close());
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void whileBusy(this.#button, () => this.#submit());
    });
  }

  open(): void {
    this.#setOpen(true);
    this.#fields.input("name").focus();
  }

  close(): void {
    if (this.#form.contains(document.activeElement)) this.#opener.focus();
    this.#setOpen(false);
  }

  /** Forgets what was typed, when somebody signs out. */
  reset(): void {
    this.#pendingKeys.clear();
    this.#form.reset();
    this.#setOpen(false);
  }

  #setOpen(isOpen: boolean): void {
    if (!isOpen) this.#fields.showErrors([]);
    show(this.#form, isOpen);
    this.#opener.setAttribute("aria-expanded", String(isOpen));
  }

  async #submit(): Promise<void> {
    const fields = this.#fields;
    const name = fields.input("name").value;
    const tag = fields.input("tag").value;
    const id = fields.input("id").value;
    if (!/^\s*(?:-?\d+)?\s*$/.test(id)) {
      return fields.showErrors([["id", "Must be a whole number, or empty."]]);
    }
    const draft = { name, tag, id: id.trim() === "" ? undefined : BigInt(id) };
    const draftText = JSON.stringify([name, tag, id]);
    const key = this.#pendingKeys.get(draftText) ?? makeIdempotencyKey();
    this.#pendingKeys.set(draftText, key);
    fields.showErrors([]);
    try {
      const plant = await this.#events.api().create(draft, key);
      this.#pendingKeys.clear();
      this.#form.reset();
      this.#events.onAdded(plant);
      if (!this.#form.hidden) fields.input("name").focus();
    } catch (error) {
      if (isOutcomeKnown(error)) this.#pendingKeys.delete(draftText);
      if (this.#events.onError(error)) return;
      fields.showFailure(error, "It’s safe to add it again: it will be stored once.");
    }
  }
}

/** After a 5xx the plant may have been stored. A 429 says nothing about an earlier try. */
function isOutcomeKnown(error: unknown): boolean {
  const status = toRefusal(error)?.status ?? 500;
  return status < 500 && status !== 429;
}
