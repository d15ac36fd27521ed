/** The form that adds a plant. */
import { makeIdempotencyKey, type Plant, toRefusal } from "./api.ts";
import { find, show, whileBusy } from "./elements.ts";
import { FormFields } from "./form-fields.ts";
import { api } from "./session.ts";

export class AddForm {
  readonly #onAdded: (plant: Plant) => void;
  readonly #form = find<HTMLFormElement>("add");
  readonly #fields = new FormFields("add", ["name", "tag", "id"]);
  readonly #opener = find("open-add");
  readonly #button = find<HTMLButtonElement>("add-button");
  /**
   * The idempotency keys of drafts whose outcome is unknown. Sending a draft again, even after
   * another one, reuses its key, so it's stored once.
   */
  readonly #pendingKeys = new Map<string, string>();

  constructor(onAdded: (plant: Plant) => void) {
    this.#onAdded = onAdded;
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
      const plant = await api.create(draft, { idempotencyKey: key });
      this.#pendingKeys.clear();
      this.#form.reset();
      this.#onAdded(plant);
      if (!this.#form.hidden) fields.input("name").focus();
    } catch (error) {
      if (isOutcomeKnown(error)) this.#pendingKeys.delete(draftText);
      fields.showFailure(error, "It’s safe to add it again: it will be stored once.");
    }
  }
}

/** After a 5xx, the plant may be stored. A 429 says nothing about an earlier try. */
function isOutcomeKnown(error: unknown): boolean {
  const status = toRefusal(error)?.status ?? 500;
  return status < 500 && status !== 429;
}
