/** The fields of a form. The service validates; each error is shown at its field. */
import { batch, signal } from "@preact/signals";
import { describeError, toRefusal } from "./api.ts";

export type Field = "name" | "tag" | "id";
export type Values = Readonly<Record<Field, string>>;

const empty: Values = { name: "", tag: "", id: "" };

export class Form {
  readonly #fields: readonly Field[];
  readonly values = signal(empty);
  /** What is wrong with each field. */
  readonly errors = signal(empty);
  /** What is wrong, if that isn't about a single field. */
  readonly error = signal("");
  readonly isBusy = signal(false);
  /** The field that gets the focus next. */
  readonly focus = signal<{ readonly field: Field } | undefined>();

  constructor(fields: readonly Field[]) {
    this.#fields = fields;
  }

  set(field: Field, text: string): void {
    batch(() => {
      this.values.value = { ...this.values.value, [field]: text };
      this.errors.value = { ...this.errors.value, [field]: "" };
      this.error.value = "";
    });
  }

  reset(values: Partial<Values> = {}): void {
    this.values.value = { ...empty, ...values };
    this.clearErrors();
  }

  clearErrors(): void {
    this.errors.value = empty;
    this.error.value = "";
  }

  focusOn(field: Field): void {
    this.focus.value = { field };
  }

  /** Runs it, unless it's running already. */
  async submit(work: () => Promise<void>): Promise<void> {
    if (this.isBusy.value) return;
    this.isBusy.value = true;
    try {
      await work();
    } finally {
      this.isBusy.value = false;
    }
  }

  /** The first field with an error gets the focus. */
  showError(field: Field | undefined, detail: string): void {
    if (field === undefined) this.error.value += this.error.value ? ` ${detail}` : detail;
    else {
      const before = this.errors.value[field];
      this.errors.value = {
        ...this.errors.value,
        [field]: before ? `${before} ${detail}` : detail,
      };
    }
    const first = this.#fields.find((each) => this.errors.value[each] !== "");
    if (first) this.focusOn(first);
  }

  /** Shows why a call failed. The advice is for calls without a response. */
  fail(error: unknown, advice: string): void {
    const refusal = toRefusal(error);
    for (const { pointer = "", detail } of refusal?.errors ?? []) {
      const field = this.#fields.find((name) => pointer === `/${name}`);
      this.showError(field, field ? capitalize(detail) : `${pointer} ${detail}`);
    }
    if (!refusal) this.showError(undefined, `${describeError(error)} ${advice}`);
    else if (refusal.errors.length === 0) {
      this.showError(refusal.code === "conflict" ? "id" : undefined, refusal.detail);
    }
  }
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
