/** Forms and their fields. The service validates; each error is shown at its field. */
import { signal } from "@preact/signals";
import type { TargetedKeyboardEvent } from "preact";
import { capitalize, describeError, type Plant, toRefusal } from "./api.ts";
import { Task } from "./message.ts";
import { focusSoon, onText } from "./parts.tsx";

type Field = keyof Plant;
type Values = Readonly<Record<Field, string>>;

const empty: Values = { name: "", tag: "", id: "" };

export class Form {
  readonly values = signal(empty);
  /** What is wrong with each field, or with none in particular. */
  readonly errors = signal<Readonly<Partial<Record<string, string>>>>({});
  readonly sending = new Task();

  /** The ids of its elements start with the prefix: `add-name`, `add-name-error`. */
  constructor(readonly prefix: string) {}

  set(values: Partial<Values>): void {
    this.values.value = { ...this.values.value, ...values };
  }

  reset(values: Partial<Values> = {}): void {
    this.set({ ...empty, ...values });
    this.errors.value = {};
  }

  focusOn(field: Field): void {
    focusSoon(`${this.prefix}-${field}`);
  }

  /** Shows why a call failed. The advice is for calls without a response. */
  fail(error: unknown, advice: string): void {
    const refusal = toRefusal(error);
    const invalid = refusal?.errors.map(({ pointer = "", detail }) => [
      pointer.slice(1) || "form",
      capitalize(detail),
    ]);
    if (!refusal) this.errors.value = { form: `${describeError(error)} ${advice}` };
    else if (invalid?.length) this.errors.value = Object.fromEntries(invalid);
    else this.errors.value = { [refusal.code === "conflict" ? "id" : "form"]: refusal.detail };
    const first = Object.keys(empty).find((field) => field in this.errors.value);
    if (first) this.focusOn(first as Field);
  }

  /** Sends it once at a time. */
  submit(event: Event, send: () => Promise<void>): void {
    event.preventDefault();
    this.errors.value = {};
    void this.sending.run(send);
  }
}

interface TextFieldProps {
  readonly form: Form;
  readonly field: Field;
  readonly label: string;
  /** Shows all of a long text, in several lines. Enter still sends the form. */
  readonly isLong?: boolean;
  readonly isOptional?: boolean;
  readonly readOnly?: boolean;
  readonly list?: string;
  readonly placeholder?: string;
  readonly pattern?: string;
  readonly title?: string;
}

function sendOnEnter(event: TargetedKeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

export function TextField(props: TextFieldProps) {
  const { form, field, label, isLong, isOptional, readOnly, ...rest } = props;
  const id = `${form.prefix}-${field}`;
  const error = form.errors.value[field];
  const change = (text: string) => {
    form.set({ [field]: text });
    form.errors.value = { ...form.errors.value, [field]: undefined };
  };
  const attributes = {
    ...rest,
    id,
    // Once the response comes, what was typed until then would be lost.
    readOnly: readOnly || form.sending.isRunning.value,
    required: !isOptional,
    value: form.values.value[field],
    onInput: onText(change),
    "aria-describedby": `${id}-error`,
    "aria-invalid": error !== undefined,
  };
  return (
    <div class={`field ${field}`}>
      <label class="unseen" for={id}>
        {label}
      </label>
      {isLong ? (
        <textarea {...attributes} rows={1} onKeyDown={sendOnEnter} />
      ) : (
        <input {...attributes} type="text" />
      )}
      <p id={`${id}-error`} class="error" role="alert">
        {error}
      </p>
    </div>
  );
}
