/** The form that adds a plant. The service finds the faults; the form shows each at its field. */
import { type Draft, makeKey, type Plant, Refusal } from "./api.ts";
import { find, show } from "./elements.ts";

const fields = ["name", "tag", "id"] as const;
type Field = (typeof fields)[number];

/** What is wrong, and at which field; absent: with the whole. */
type FieldFault = readonly [field: Field | undefined, detail: string];

export interface AddEvents {
  readonly create: (draft: Draft, key: string) => Promise<Plant>;
  readonly onAdded: (plant: Plant) => void;
  /** True if the error concerns the whole page, and the form need not show it. */
  readonly onError: (error: unknown) => boolean;
}

export class AddForm {
  readonly #events: AddEvents;
  readonly #form = find<HTMLFormElement>("add");
  readonly #opener = find("open-add");
  readonly #button = find<HTMLButtonElement>("add-button");
  /**
   * Keys of drafts that got no answer: each is sent again under its own, also when another was
   * tried in between, so that it is not stored twice.
   */
  readonly #unanswered = new Map<string, string>();

  constructor(events: AddEvents) {
    this.#events = events;
    this.#opener.addEventListener("click", () => (this.#form.hidden ? this.open() : this.close()));
    find("close-add").addEventListener("click", () => this.close());
    this.#form.addEventListener("keydown", ({ key }) => key === "Escape" && this.close());
    for (const field of fields) {
      input(field).addEventListener("input", () => {
        showFault(field, "");
        find("add-fault").textContent = "";
      });
    }
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#submit();
    });
  }

  open(): void {
    show(this.#form, true);
    this.#opener.setAttribute("aria-expanded", "true");
    input("name").focus();
  }

  close(): void {
    if (this.#form.contains(document.activeElement)) this.#opener.focus();
    show(this.#form, false);
    this.#opener.setAttribute("aria-expanded", "false");
  }

  /** Empties it, as for somebody else. */
  reset(): void {
    this.#unanswered.clear();
    this.#form.reset();
    this.#showFaults([]);
    show(this.#form, false);
    this.#opener.setAttribute("aria-expanded", "false");
  }

  async #submit(): Promise<void> {
    if (this.#button.disabled) return;
    const draft = {
      name: input("name").value,
      tag: input("tag").value,
      id: input("id").value.trim(),
    };
    const text = JSON.stringify(draft);
    const key = this.#unanswered.get(text) ?? makeKey();
    this.#unanswered.set(text, key);
    this.#showFaults([]);
    this.#button.disabled = true;
    try {
      const plant = await this.#events.create(draft, key);
      this.#unanswered.clear();
      this.#form.reset();
      this.#events.onAdded(plant);
      if (!this.#form.hidden) input("name").focus();
    } catch (error) {
      if (isJudged(error)) this.#unanswered.delete(text);
      if (!this.#events.onError(error)) this.#showFaults(toFaults(error));
    } finally {
      this.#button.disabled = false;
    }
  }

  /** Each at its field, and those of no field below; the focus goes to the first. */
  #showFaults(faults: readonly FieldFault[]): void {
    for (const field of fields) {
      const own = faults.filter(([name]) => name === field).map(([, detail]) => detail);
      showFault(field, own.join(" "));
    }
    const others = faults.filter(([name]) => name === undefined).map(([, detail]) => detail);
    find("add-fault").textContent = others.join(" ");
    const first = fields.find((field) => faults.some(([name]) => name === field));
    if (first) input(first).focus();
  }
}

/**
 * Whether the service looked at the draft. After a fault of its own the outcome is as unknown as
 * without an answer, and a rate limit says nothing of what became of an earlier try.
 */
function isJudged(error: unknown): boolean {
  return error instanceof Refusal && error.status < 500 && error.status !== 429;
}

function toFaults(error: unknown): FieldFault[] {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof Refusal)) {
    return [
      [undefined, `${message} “Add” sends the same plant again, and it is stored once only.`],
    ];
  }
  if (error.status === 409) return [["id", message]];
  if (error.faults.length === 0) return [[undefined, message]];
  return error.faults.map(({ pointer = "", detail }) => {
    const field = fields.find((name) => pointer === `/${name}`);
    return [field, field ? capitalise(detail) : `${pointer} ${detail}`];
  });
}

function showFault(field: Field, text: string): void {
  find(`add-${field}-fault`).textContent = text;
  input(field).setAttribute("aria-invalid", String(text !== ""));
}

function input(field: Field): HTMLInputElement {
  return find<HTMLInputElement>(`add-${field}`);
}

function capitalise(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
