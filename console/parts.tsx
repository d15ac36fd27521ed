/** Small parts that the page is made of. */
import type { Signal } from "@preact/signals";
import type { ComponentChildren, HTMLAttributes } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { toHash } from "./address.ts";
import type { Task } from "./message.ts";

export function focus(id: string): void {
  document.getElementById(id)?.focus({ preventScroll: true });
}

/** Once the page shows what has just changed. */
export function focusSoon(id: string): void {
  queueMicrotask(() => document.getElementById(id)?.focus());
}

/** Passes on what is typed. */
export function onText(use: (text: string) => void) {
  return ({ currentTarget }: { currentTarget: HTMLInputElement }) => use(currentTarget.value);
}

export function onEscape(leave: () => void) {
  return ({ key }: KeyboardEvent) => key === "Escape" && leave();
}

export function PlantLink({ id, name }: { id: bigint; name: string }) {
  return <a href={toHash({ plant: id })}>{name}</a>;
}

interface ButtonProps extends Omit<HTMLAttributes<HTMLButtonElement>, "role" | "label"> {
  /** What it says, unless that is between its tags. */
  readonly label?: ComponentChildren;
  /** The key that does the same. */
  readonly shortcut?: string;
  /** While it runs, the button is disabled. If that lasts, it shows a spinner. */
  readonly task?: Task;
  readonly type?: "button" | "submit";
  readonly disabled?: boolean;
}

export function Button({ label, children = label, shortcut, task, ...rest }: ButtonProps) {
  const isBusy = task?.isRunning.value ?? false;
  const state = { disabled: rest.disabled || isBusy, "aria-busy": isBusy || undefined };
  return (
    <button type="button" {...rest} {...state}>
      {children}
      {shortcut && " "}
      {shortcut && <Key name={shortcut} />}
    </button>
  );
}

/** A hint for a key, which screen readers leave out. */
export function Key({ name }: { name: string }) {
  return <kbd aria-hidden="true">{name}</kbd>;
}

interface CheckboxProps {
  readonly id: string;
  readonly isChecked: Signal<boolean>;
  readonly label: string;
}

export function Checkbox({ id, isChecked, label }: CheckboxProps) {
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
  readonly isModal?: boolean;
  /** Escape was pressed. */
  readonly onLeave: () => void;
}

export function Dialog({ isOpen, isModal = true, onLeave, ...rest }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    if (!element || isOpen === element.open) return;
    if (!isOpen) return element.close();
    const top = scrollY;
    if (isModal) element.showModal();
    else element.show();
    // Opening moves the focus, and with it the page.
    scrollTo({ top, behavior: "instant" });
  }, [isOpen]);
  const cancel = (event: Event) => {
    event.preventDefault();
    onLeave();
  };
  // Browsers close a dialog at the second Escape, whatever the page makes of it.
  return <dialog {...rest} ref={dialog} onCancel={cancel} onClose={() => isOpen && onLeave()} />;
}
