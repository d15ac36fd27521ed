/** Small parts that the page is made of. */
import type { Signal } from "@preact/signals";
import type { ComponentChildren, HTMLAttributes } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { type Task, undo, undoing } from "./message.ts";

export function focus(id: string): void {
  document.getElementById(id)?.focus({ preventScroll: true });
}

/** Whether keys go into a text. Then the focus stays there, unless somebody asks to go elsewhere. */
export function isTyping(): boolean {
  return document.activeElement?.matches("input:not([type=checkbox]), textarea") ?? false;
}

/** Once the page shows what has just changed. */
export function focusSoon(id: string): void {
  queueMicrotask(() => document.getElementById(id)?.focus());
}

/** Passes on what is typed. */
export function onText(use: (text: string) => void) {
  return ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
    use(currentTarget.value);
}

export function onEscape(leave: (event: KeyboardEvent) => void) {
  return (event: KeyboardEvent) => event.key === "Escape" && leave(event);
}

interface ButtonProps extends Omit<HTMLAttributes<HTMLButtonElement>, "role" | "label"> {
  /** What it says, unless that is between its tags. */
  readonly label?: ComponentChildren;
  /** The key that does the same. */
  readonly shortcut?: string;
  /** While it runs, the button is disabled. */
  readonly task?: Task;
  readonly type?: "button" | "submit";
  /** The form that it submits, unless it's inside of it. */
  readonly form?: string;
  readonly disabled?: boolean;
}

export function Button({ label, children = label, shortcut, task, ...rest }: ButtonProps) {
  const isBusy = task?.isRunning.value ?? false;
  const state = { disabled: rest.disabled || isBusy, "aria-busy": isBusy || undefined };
  return (
    <button type="button" {...rest} {...state}>
      {children}
      {shortcut && [" ", <Key name={shortcut} />]}
    </button>
  );
}

/** Undoes the last change. */
export function UndoButton({ id }: { id: string }) {
  const label = undoing.isRunning.value ? "Undoing…" : "Undo";
  return <Button id={id} task={undoing} onClick={undo} shortcut="z" label={label} />;
}

/** A hint for a key, which screen readers leave out. */
export function Key({ name }: { name: string }) {
  return <kbd aria-hidden="true">{name}</kbd>;
}

export function Checkbox(props: { id: string; isChecked: Signal<boolean>; label: string }) {
  const { id, isChecked, label } = props;
  const change = () => {
    isChecked.value = !isChecked.value;
  };
  return (
    <label class="check">
      <input id={id} type="checkbox" checked={isChecked.value} onChange={change} /> {label}
    </label>
  );
}

interface DialogProps extends Omit<HTMLAttributes<HTMLDialogElement>, "role"> {
  readonly isOpen: boolean;
  /** Somebody wants to close it, such as with Escape. */
  readonly onLeave: () => void;
}

export function Dialog({ isOpen, onLeave, ...rest }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  const leave = (event: Event) => {
    event.preventDefault();
    event.stopPropagation();
    onLeave();
  };
  // Browsers would close a dialog at the second Escape, whatever the page makes of `cancel`.
  return <dialog {...rest} ref={dialog} onCancel={leave} onKeyDown={onEscape(leave)} />;
}
