/** Plants by tag: chips that filter, and a small bar chart. */
import { renderCount } from "../plant-file/words.ts";
import { find, make } from "./elements.ts";
import type { Garden, TagCount } from "./garden.ts";
import { describeLoaded } from "./garden-words.ts";

const barsMax = 7;
const chipsMax = 14;
const allChipsMax = 400;

export class TagsView {
  readonly #chart = find("chart");
  readonly #chips = find("chips");
  readonly #known = find("known-tags");
  readonly #onChoose: (tag: string | undefined) => void;
  #areAllShown = false;
  /** What was drawn, to draw only what changed. */
  #drawn: readonly unknown[] = [];

  constructor(onChoose: (tag: string | undefined) => void) {
    this.#onChoose = onChoose;
    // On a phone the space is better used for the list.
    find<HTMLDetailsElement>("chart-box").open = matchMedia("(min-width: 60rem)").matches;
  }

  /** The tags of all plants loaded so far, and the chosen one. */
  draw(all: Garden, shown: Garden): void {
    const state = [all.countTags(), all.next, all.total, shown.tag, shown.size, shown.isLoading];
    if (state.every((part, index) => part === this.#drawn[index])) return;
    this.#drawn = state;
    const counts = countWithChosen(all, shown);
    find("chart-note").textContent = `Counts ${describeLoaded(all)}`;
    this.#chart.replaceChildren(...drawChart(counts));
    this.#drawChips(counts, shown.tag);
    const tags = counts.map(([tag]) => tag).filter(Boolean);
    this.#known.replaceChildren(
      ...tags.slice(0, allChipsMax).map((tag) => make("option", { value: tag })),
    );
  }

  #drawChips(counts: readonly TagCount[], chosen: string | undefined): void {
    const hadFocus = (document.activeElement as HTMLElement | null)?.dataset.tag;
    const most = counts.slice(0, this.#areAllShown ? allChipsMax : chipsMax);
    const chosenOne = counts.find(([tag]) => tag === chosen);
    if (chosenOne && !most.includes(chosenOne)) most.push(chosenOne);
    const chips = most.map(([tag, plants]) => {
      const isChosen = tag === chosen;
      const chip = make(
        "button",
        { type: "button", class: "chip", "aria-pressed": String(isChosen), "data-tag": `=${tag}` },
        make("bdi", { class: tag === "" ? "untagged" : "" }, nameTag(tag)),
        make("span", { class: "amount" }, renderCount(plants)),
      );
      chip.addEventListener("click", () => this.#onChoose(isChosen ? undefined : tag));
      return chip;
    });
    if (counts.length > chipsMax) chips.push(this.#makeToggle(counts, chosen));
    this.#chips.replaceChildren(...chips);
    chips.find((chip) => hadFocus !== undefined && chip.dataset.tag === hadFocus)?.focus();
  }

  #makeToggle(counts: readonly TagCount[], chosen: string | undefined): HTMLButtonElement {
    const label = this.#areAllShown ? "Fewer tags" : `All ${renderCount(counts.length, "tag")}`;
    const toggle = make("button", { type: "button", class: "link", "data-tag": "toggle" }, label);
    toggle.addEventListener("click", () => {
      this.#areAllShown = !this.#areAllShown;
      this.#drawChips(counts, chosen);
    });
    return toggle;
  }
}

/** Of the chosen tag, more plants may be loaded than are in the list of all. */
function countWithChosen(all: Garden, shown: Garden): readonly TagCount[] {
  const counts = all.countTags();
  const { tag } = shown;
  if (tag === undefined || shown.isLoading) return counts;
  const isListed = counts.some(([each]) => each === tag);
  if (!isListed) return [...counts, [tag, shown.size]];
  return counts.map((each) => (each[0] === tag ? [tag, shown.size] : each));
}

/** In the address, so that a reload and a bookmark keep it; browsers don't send this part. */
export function readTagFromAddress(): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get("tag") ?? undefined;
}

export function writeTagToAddress(tag: string | undefined): void {
  const hash = tag === undefined ? "" : `#${new URLSearchParams({ tag })}`;
  history.replaceState(null, "", location.pathname + location.search + hash);
}

function nameTag(tag: string): string {
  return tag === "" ? "no tag" : tag;
}

/** A bar for each of the most frequent tags; the remaining ones are summed up below them. */
function drawChart(counts: readonly TagCount[]): HTMLElement[] {
  const bars = counts.slice(0, barsMax);
  const rest = counts.slice(barsMax);
  const most = bars[0]?.[1] ?? 1;
  const lines = bars.map(([tag, plants]) => drawLine(nameTag(tag), plants, plants / most));
  if (rest.length > 0) {
    const plants = rest.reduce((sum, [, each]) => sum + each, 0);
    lines.push(drawLine(renderCount(rest.length, "other tag"), plants));
  }
  return lines;
}

function drawLine(label: string, plants: number, share?: number): HTMLElement {
  const line = make(
    "li",
    {},
    make("bdi", {}, label),
    " ",
    make("span", { class: "amount" }, renderCount(plants)),
  );
  if (share !== undefined) {
    const bar = make("div", { class: "bar" });
    bar.style.setProperty("--share", String(share));
    line.append(bar);
  }
  return line;
}
