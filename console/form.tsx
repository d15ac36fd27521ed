/** Forms and their fields. The service validates; each error is shown at its field. */
import { batch, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { describeError, type Plant, toRefusal } from "./api.ts";
import { Task } from "./message.ts";
import { focusSoon, onText } from "./parts.tsx";

type Field = keyof Plant;

const empty = { name: "", tag: "", id: "" };
const noErrors = { ...empty, form: "" };

export class Form {
  readonly values = signal<Readonly<Record<Field, string>>>(empty);
  /** What is wrong with each field, or with none in particular. */
  readonly errors = signal(noErrors);
  readonly sending = new Task();

  /** The ids of its elements start with the prefix: `add-name`, `add-name-error`. */
  constructor(
    readonly prefix: string,
    readonly fields: readonly Field[],
  ) {}

  set(field: Field, text: string): void {
    batch(() => {
      this.values.value = { ...this.values.value, [field]: text };
      this.errors.value = { ...this.errors.value, [field]: "", form: "" };
    });
  }

  reset(values: Partial<Record<Field, string>> = {}): void {
    this.values.value = { ...empty, ...values };
    this.clearErrors();
  }

  clearErrors(): void {
    this.errors.value = noErrors;
  }

  focusOn(field: Field): void {
    focusSoon(`${this.prefix}-${field}`);
  }

  /** The first field with an error gets the focus. */
  showError(field: Field | "form", detail: string): void {
    const before = this.errors.value[field];
    this.errors.value = { ...this.errors.value, [field]: `${before} ${detail}`.trim() };
    const first = this.fields.find((each) => this.errors.value[each] !== "");
    if (first) this.focusOn(first);
  }

  /** Shows why a call failed. The advice is for calls without a response. */
  fail(error: unknown, advice: string): void {
    const refusal = toRefusal(error);
    for (const { pointer = "", detail } of refusal?.errors ?? []) {
      const field = this.fields.find((name) => pointer === `/${name}`);
      if (field) this.showError(field, detail.slice(0, 1).toUpperCase() + detail.slice(1));
      else this.showError("form", `${pointer} ${detail}`);
    }
    if (!refusal) this.showError("form", `${describeError(error)} ${advice}`);
    else if (refusal.errors.length === 0) {
      this.showError(refusal.code === "conflict" ? "id" : "form", refusal.detail);
    }
  }

  /** Sends it once at a time. */
  submit(event: Event, send: () => Promise<void>): void {
    event.preventDefault();
    void this.sending.run(send);
  }
}

interface TextFieldProps {
  readonly form: Form;
  readonly field: Field;
  readonly label: string;
  readonly isOptional?: boolean;
  readonly isWide?: boolean;
  /** What somebody else has made of the field. */
  readonly theirs?: ComponentChildren;
  readonly list?: string;
  readonly placeholder?: string;
  readonly inputMode?: "numeric";
}

export function TextField(props: TextFieldProps) {
  const { form, field, label, isOptional, isWide, theirs, ...rest } = props;
  const id = `${form.prefix}-${field}`;
  const error = form.errors.value[field];
  return (
    <div class={`field${isWide ? " grow" : ""}`}>
      <label for={id}>
        {label} {isOptional && <span class="optional">optional</span>}
      </label>
      <input
        {...rest}
        id={id}
        type="text"
        value={form.values.value[field]}
        onInput={onText((text) => form.set(field, text))}
        aria-describedby={`${id}-error${theirs === undefined ? "" : ` ${id}-theirs`}`}
        aria-invalid={error !== ""}
        aria-required={isOptional ? undefined : true}
      />
      {theirs !== undefined && (
        <p id={`${id}-theirs`} class="theirs">
          {theirs}
        </p>
      )}
      <p id={`${id}-error`} class="error">
        {error}
      </p>
    </div>
  );
}
