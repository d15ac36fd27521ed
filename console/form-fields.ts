/** The fields of a form. The service validates; each error is shown at its field. */
import { describeError, toRefusal } from "./api.ts";
import { find } from "./elements.ts";

type Field = "name" | "tag" | "id";

/** What is wrong, and with which field, if it is a single one. */
type FieldError = readonly [field: Field | undefined, detail: string];

export class FormFields {
  readonly #form: string;
  readonly #fields: readonly Field[];

  /** Ids start with the form's: `add-name`, `add-name-error`. */
  constructor(form: string, fields: readonly Field[]) {
    this.#form = form;
    this.#fields = fields;
    for (const field of fields) {
      this.input(field).addEventListener("input", () => {
        this.#showError(field, "");
        find(`${form}-error`).textContent = "";
      });
    }
  }

  input(field: Field): HTMLInputElement {
    return find<HTMLInputElement>(`${this.#form}-${field}`);
  }

  /** Errors without a field go below the form. The first field with an error gets the focus. */
  showErrors(errors: readonly FieldError[]): void {
    const detailsOf = (field?: Field) =>
      errors
        .filter(([name]) => name === field)
        .map(([, detail]) => detail)
        .join(" ");
    for (const field of this.#fields) this.#showError(field, detailsOf(field));
    find(`${this.#form}-error`).textContent = detailsOf();
    const first = this.#fields.find((field) => errors.some(([name]) => name === field));
    if (first) this.input(first).focus();
  }

  /** Shows why a call failed. The advice is for calls without a response. */
  showFailure(error: unknown, advice: string): void {
    const refusal = toRefusal(error);
    const errors = refusal?.errors.map(({ pointer = "", detail }): FieldError => {
      const field = this.#fields.find((name) => pointer === `/${name}`);
      return [field, field ? capitalize(detail) : `${pointer} ${detail}`];
    });
    if (!refusal) this.showErrors([[undefined, `${describeError(error)} ${advice}`]]);
    else if (errors?.length) this.showErrors(errors);
    else this.showErrors([[refusal.code === "conflict" ? "id" : undefined, refusal.detail]]);
  }

  #showError(field: Field, text: string): void {
    find(`${this.#form}-${field}-error`).textContent = text;
    this.input(field).setAttribute("aria-invalid", String(text !== ""));
  }
}

function capitalize(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
