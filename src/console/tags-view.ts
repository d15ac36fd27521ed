/** Plants by tag: how many there are, as bars that choose a tag. On a phone they are chips. */
import { renderCount } from "../plant-file/words.ts";
import type { TagCount } from "./api.ts";
import { find, make } from "./elements.ts";

const fewMax = 12;
const manyMax = 400;

/** `bed 2` before `bed 11`. */
const collator = new Intl.Collator("en", { numeric: true });

export class TagsView {
  readonly #box = find("tags");
  readonly #onChoose: (tag: string | undefined) => void;
  #counts: readonly TagCount[] = [];
  #chosen: string | undefined;
  #areAllShown = false;

  constructor(onChoose: (tag: string | undefined) => void) {
    this.#onChoose = onChoose;
    this.#box.addEventListener("keydown", (event) => this.#moveByKey(event));
  }

  /** Draws only what has changed. */
  draw(counts: readonly TagCount[], chosen: string | undefined): void {
    if (counts === this.#counts && chosen === this.#chosen) return;
    this.#counts = counts;
    this.#chosen = chosen;
    this.#draw();
  }

  #draw(): void {
    const hadFocus = (document.activeElement as HTMLElement | null)?.dataset.tag;
    const sorted = this.#counts.toSorted(
      (a, b) => b.plants - a.plants || collator.compare(a.tag, b.tag),
    );
    const shown = sorted.slice(0, this.#areAllShown ? manyMax : fewMax);
    const chosen = this.#chosen;
    if (chosen !== undefined && !shown.some(({ tag }) => tag === chosen)) {
      shown.push(sorted.find(({ tag }) => tag === chosen) ?? { tag: chosen, plants: 0 });
    }
    const most = sorted[0]?.plants ?? 1;
    const buttons = shown.map((count) => this.#makeButton(count, most));
    if (sorted.length > fewMax) buttons.push(this.#makeToggle());
    this.#box.replaceChildren(...buttons);
    const focused = buttons.find(
      ({ dataset }) => hadFocus !== undefined && dataset.tag === hadFocus,
    );
    const chosenButton = buttons.find(({ ariaPressed }) => ariaPressed === "true");
    this.#makeReachable(focused ?? chosenButton ?? buttons[0]);
    focused?.focus();
    const known = sorted.slice(0, manyMax).filter(({ tag }) => tag !== "");
    find("known-tags").replaceChildren(...known.map(({ tag }) => make("option", { value: tag })));
  }

  #makeButton({ tag, plants }: TagCount, most: number): HTMLButtonElement {
    const isChosen = tag === this.#chosen;
    const button = make(
      "button",
      { type: "button", class: "chip", "aria-pressed": String(isChosen), "data-tag": `=${tag}` },
      make("bdi", { class: tag === "" ? "untagged" : "" }, tag === "" ? "no tag" : tag),
      " ",
      make("span", { class: "amount" }, renderCount(plants)),
    );
    button.style.setProperty("--share", String(plants / most));
    button.addEventListener("click", () => this.#onChoose(isChosen ? undefined : tag));
    return button;
  }

  #makeToggle(): HTMLButtonElement {
    const label = this.#areAllShown ? "Fewer tags" : "All tags";
    const toggle = make("button", { type: "button", class: "link", "data-tag": "toggle" }, label);
    toggle.addEventListener("click", () => {
      this.#areAllShown = !this.#areAllShown;
      this.#draw();
    });
    return toggle;
  }

  /** One Tab passes all of them; arrows move between them. */
  #makeReachable(button: HTMLElement | undefined): void {
    for (const each of this.#box.querySelectorAll("button")) {
      each.tabIndex = each === button ? 0 : -1;
    }
  }

  #moveByKey(event: KeyboardEvent): void {
    const buttons = [...this.#box.querySelectorAll("button")];
    const at = buttons.indexOf(event.target as HTMLButtonElement);
    const steps = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
    const step = steps[event.key as keyof typeof steps];
    const next = step && buttons[at + step];
    if (!next) return;
    event.preventDefault();
    this.#makeReachable(next);
    next.focus();
  }
}
