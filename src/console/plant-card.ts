/** One plant in full, in a dialog, with a button to copy each of its fields. */
import type { Plant } from "./api.ts";
import { find } from "./elements.ts";

const fields = ["id", "name", "tag"] as const;

export class PlantCard {
  readonly #dialog = find<HTMLDialogElement>("plant");

  constructor() {
    find("plant-close").addEventListener("click", () => this.close());
    for (const field of fields) {
      find(`copy-${field}`).addEventListener("click", () => {
        const isCopied = copy(find(`plant-${field}`));
        const copied = `The ${field} was copied.`;
        find("plant-note").textContent = isCopied ? copied : "Press Ctrl+C or ⌘C to copy it.";
      });
    }
  }

  open(plant: Plant): void {
    for (const field of fields) find(`plant-${field}`).textContent = String(plant[field]);
    find<HTMLButtonElement>("copy-tag").disabled = plant.tag === "";
    find("plant-note").textContent = "";
    this.#dialog.showModal();
  }

  close(): void {
    this.#dialog.close();
  }
}

/** Not `navigator.clipboard`, which browsers deny to pages loaded over plain HTTP. */
function copy(element: HTMLElement): boolean {
  getSelection()?.selectAllChildren(element);
  // The text as it is: a selection would lose some white space.
  const setText = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", element.textContent);
    event.preventDefault();
  };
  document.addEventListener("copy", setText, { once: true });
  const isCopied = document.execCommand("copy");
  document.removeEventListener("copy", setText);
  return isCopied;
}
