/** Small parts that the page is made of. */
import type { ComponentChildren, HTMLAttributes } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Field, Form } from "./form.ts";
import type { Message } from "./message.ts";
import { address, session } from "./state.ts";

/** A message. Names keep their own direction, and plants are links. */
export function Words({ text }: { text: Message }) {
  return text.map((part) => {
    if (typeof part === "string") return part;
    if ("name" in part) return <bdi>{part.name}</bdi>;
    return <PlantLink id={part.plant}>{String(part.plant)}</PlantLink>;
  });
}

export function PlantLink({ id, children }: { id: bigint; children: ComponentChildren }) {
  const open = (event: Event) => {
    event.preventDefault();
    address.go({ plant: id });
  };
  return (
    <a href={`#plant=${id}`} onClick={open}>
      {children}
    </a>
  );
}

interface ButtonProps extends Omit<HTMLAttributes<HTMLButtonElement>, "role" | "label"> {
  readonly label: ComponentChildren;
  /** The key that does the same. */
  readonly shortcut?: string;
  /** Disables the button. If that lasts, it shows a spinner. */
  readonly isBusy?: boolean;
  readonly type?: "button" | "submit";
  readonly disabled?: boolean;
}

export function Button({ label, shortcut, isBusy = false, ...rest }: ButtonProps) {
  const state = { disabled: rest.disabled || isBusy, "aria-busy": isBusy || undefined };
  return (
    <button type="button" {...rest} {...state}>
      {label}
      {shortcut && " "}
      {shortcut && <Key name={shortcut} />}
    </button>
  );
}

/** A hint for a key, which screen readers leave out. */
export function Key({ name }: { name: string }) {
  return <kbd aria-hidden="true">{name}</kbd>;
}

interface TextFieldProps {
  readonly form: Form;
  /** The ids start with it: `add-name`, `add-name-error`. */
  readonly prefix: string;
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
  const { form, prefix, field, label, isOptional, isWide, theirs, ...rest } = props;
  const id = `${prefix}-${field}`;
  const error = form.errors.value[field];
  const input = useRef<HTMLInputElement>(null);
  const { focus } = form;
  useLayoutEffect(() => {
    if (focus.value?.field === field) input.current?.focus();
  }, [focus.value]);
  return (
    <div class={`field${isWide ? " grow" : ""}`}>
      <label for={id}>
        {label} {isOptional && <span class="optional">optional</span>}
      </label>
      <input
        {...rest}
        id={id}
        type="text"
        ref={input}
        value={form.values.value[field]}
        onInput={(event) => form.set(field, event.currentTarget.value)}
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

interface DialogProps extends Omit<HTMLAttributes<HTMLDialogElement>, "role"> {
  readonly isOpen: boolean;
  readonly isModal?: boolean;
  /** Escape was pressed. */
  readonly onLeave: () => void;
}

/** Nothing stays in front of the form that asks for a token. */
export function Dialog({ isOpen, isModal = true, onLeave, ...rest }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isShown = isOpen && session.isSignedIn.value;
  useLayoutEffect(() => {
    const element = dialog.current;
    if (!element || isShown === element.open) return;
    if (!isShown) return element.close();
    const top = scrollY;
    if (isModal) element.showModal();
    else element.show();
    // Opening moves the focus, and with it the page.
    scrollTo({ top, behavior: "instant" });
  }, [isShown]);
  const cancel = (event: Event) => {
    event.preventDefault();
    onLeave();
  };
  // Browsers close a dialog at the second Escape, whatever the page makes of it.
  return <dialog {...rest} ref={dialog} onCancel={cancel} onClose={() => isShown && onLeave()} />;
}
