/**
 * Keys that work wherever nothing is being typed; they can be switched off, as some people need.
 */
import { find } from "./elements.ts";

export function listenForShortcuts(actions: Readonly<Record<string, () => void>>): void {
  const areOn = find<HTMLInputElement>("use-shortcuts");
  document.addEventListener("keydown", (event) => {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    const isTyping = target instanceof HTMLInputElement && target.type !== "checkbox";
    const action = actions[key];
    if (!action || isTyping || !areOn.checked || altKey || ctrlKey || metaKey) return;
    event.preventDefault();
    action();
  });
}
