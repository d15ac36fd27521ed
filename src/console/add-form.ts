/** The form that adds a plant. The service validates; the form shows each error at its field. */
import {
  describeError,
  makeIdempotencyKey,
  type Plant,
  type PlantDraft,
  toRefusal,
} from "./api.ts";
import { find, show } from "./elements.ts";

const fields = ["name", "tag", "id"] as const;
type Field = (typeof fields)[number];

/** What is wrong, and with which field; absent: with the whole. */
type FieldError = readonly [field: Field | undefined, detail: string];

export interface AddEvents {
  readonly create: (draft: PlantDraft, idempotencyKey: string) => Promise<Plant>;
  readonly onAdded: (plant: Plant) => void;
  /** True if the page has handled the error, and the form need not show it. */
  readonly onError: (error: unknown) => boolean;
}

export class AddForm {
  readonly #events: AddEvents;
  readonly #form = find<HTMLFormElement>("add");
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
    for (const field of fields) {
      input(field).addEventListener("input", () => {
        showError(field, "");
        find("add-error").textContent = "";
      });
    }
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#submit();
    });
  }

  open(): void {
    this.#setOpen(true);
    input("name").focus();
  }

  close(): void {
    if (this.#form.contains(document.activeElement)) this.#opener.focus();
    this.#setOpen(false);
  }

  /** For the next person. */
  reset(): void {
    this.#pendingKeys.clear();
    this.#form.reset();
    this.#showErrors([]);
    this.#setOpen(false);
  }

  #setOpen(isOpen: boolean): void {
    show(this.#form, isOpen);
    this.#opener.setAttribute("aria-expanded", String(isOpen));
  }

  async #submit(): Promise<void> {
    if (this.#button.disabled) return;
    const [name, tag, id] = fields.map((field) => input(field).value) as [string, string, string];
    if (!/^\s*(?:-?\d+)?\s*$/.test(id)) {
      return this.#showErrors([["id", "Must be a whole number, or empty."]]);
    }
    const draft = { name, tag, id: id.trim() === "" ? undefined : BigInt(id) };
    const draftText = JSON.stringify([name, tag, id]);
    const key = this.#pendingKeys.get(draftText) ?? makeIdempotencyKey();
    this.#pendingKeys.set(draftText, key);
    this.#showErrors([]);
    this.#button.disabled = true;
    try {
      const plant = await this.#events.create(draft, key);
      this.#pendingKeys.clear();
      this.#form.reset();
      this.#events.onAdded(plant);
      if (!this.#form.hidden) input("name").focus();
    } catch (error) {
      if (isOutcomeKnown(error)) this.#pendingKeys.delete(draftText);
      if (!this.#events.onError(error)) this.#showErrors(toFieldErrors(error));
    } finally {
      this.#button.disabled = false;
    }
  }

  /** Errors of no field go below the form; the focus goes to the first field with one. */
  #showErrors(errors: readonly FieldError[]): void {
    const detailsOf = (field?: Field) =>
      errors
        .filter(([name]) => name === field)
        .map(([, detail]) => detail)
        .join(" ");
    for (const field of fields) showError(field, detailsOf(field));
    find("add-error").textContent = detailsOf();
    const first = fields.find((field) => errors.some(([name]) => name === field));
    if (first) input(first).focus();
  }
}

/** After a 5xx the plant may be stored all the same; a 429 says nothing about an earlier try. */
function isOutcomeKnown(error: unknown): boolean {
  const status = toRefusal(error)?.status ?? 500;
  return status < 500 && status !== 429;
}

function toFieldErrors(error: unknown): FieldError[] {
  const refusal = toRefusal(error);
  if (!refusal) {
    const advice = "It is safe to add it again: it will be stored once.";
    return [[undefined, `${describeError(error)} ${advice}`]];
  }
  if (refusal.code === "conflict") return [["id", refusal.detail]];
  if (refusal.errors.length === 0) return [[undefined, refusal.detail]];
  return refusal.errors.map(({ pointer = "", detail }) => {
    const field = fields.find((name) => pointer === `/${name}`);
    return [field, field ? capitalize(detail) : `${pointer} ${detail}`];
  });
}

function showError(field: Field, text: string): void {
  find(`add-${field}-error`).textContent = text;
  input(field).setAttribute("aria-invalid", String(text !== ""));
}

function input(field: Field): HTMLInputElement {
  return find<HTMLInputElement>(`add-${field}`);
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
