/** Plants by tag, as bars that choose a tag. On a phone they are chips. */
import { renderCount } from "../client/files/renderer.ts";
import type { TagCount } from "./api.ts";
import { find, make, setChildren, show } from "./elements.ts";

const fewMax = 12;
const manyMax = 400;

/** `bed 2` before `bed 11`. */
const collator = new Intl.Collator("en", { numeric: true });

export class TagsView {
  readonly #box = find("tags");
  readonly #onChoose: (tag: string | undefined) => void;
  readonly #toggle = make("button", { type: "button", class: "link" });
  #buttons = new Map<string, HTMLButtonElement>();
  #counts: readonly TagCount[] = [];
  #chosen: string | undefined;
  #areAllShown = false;

  constructor(onChoose: (tag: string | undefined) => void) {
    this.#onChoose = onChoose;
    this.#box.addEventListener("keydown", (event) => this.#moveByKey(event));
    this.#toggle.addEventListener("click", () => {
      this.#areAllShown = !this.#areAllShown;
      this.#draw();
    });
  }

  draw(counts: readonly TagCount[], chosen: string | undefined): void {
    if (counts === this.#counts && chosen === this.#chosen) return;
    this.#counts = counts;
    this.#chosen = chosen;
    this.#draw();
  }

  #draw(): void {
    const sorted = this.#counts.toSorted(
      (a, b) => b.plants - a.plants || collator.compare(a.tag, b.tag),
    );
    const shown = sorted.slice(0, this.#areAllShown ? manyMax : fewMax);
    const chosen = this.#chosen;
    if (chosen !== undefined && !shown.some(({ tag }) => tag === chosen)) {
      shown.push(sorted.find(({ tag }) => tag === chosen) ?? { tag: chosen, plants: 0 });
    }
    this.#buttons = new Map(
      shown.map(({ tag }) => [tag, this.#buttons.get(tag) ?? this.#makeButton(tag)]),
    );
    for (const { tag, plants } of shown) {
      const button = this.#buttons.get(tag) as HTMLButtonElement;
      button.ariaPressed = String(tag === chosen);
      button.style.setProperty("--share", String(plants / (sorted[0]?.plants ?? 1)));
      button.lastElementChild?.replaceChildren(renderCount(plants));
    }
    this.#toggle.textContent = this.#areAllShown ? "Fewer tags" : "All tags";
    show(this.#toggle, sorted.length > fewMax);
    setChildren(this.#box, [...this.#buttons.values(), this.#toggle]);
    if (!this.#box.contains(document.activeElement)) {
      this.#makeReachable(this.#buttons.get(chosen ?? shown[0]?.tag ?? ""));
    }
    const known = sorted.slice(0, manyMax).filter(({ tag }) => tag !== "");
    find("known-tags").replaceChildren(...known.map(({ tag }) => make("option", { value: tag })));
  }

  #makeButton(tag: string): HTMLButtonElement {
    const button = make(
      "button",
      { type: "button", class: "chip" },
      make("bdi", { class: tag === "" ? "absent" : "" }, tag === "" ? "no tag" : tag),
      " ",
      make("span", { class: "amount" }),
    );
    button.tabIndex = -1;
    button.addEventListener("click", () => this.#onChoose(tag === this.#chosen ? undefined : tag));
    return button;
  }

  /** One Tab passes all the tags. Arrow keys move between them. */
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
