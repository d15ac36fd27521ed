/** Plants by tag: chips that filter, and a small chart with a text alternative. */
import { count, find, make, makeSvg } from "./elements.ts";
import type { TagCount } from "./garden.ts";

const barsMax = 7;
const chipsMax = 14;
const allChipsMax = 400;

export class TagsView {
  readonly #chart = find("chart");
  readonly #chips = find("chips");
  readonly #known = find("known-tags");
  readonly #onChoose: (tag: string | undefined) => void;
  #areAllShown = false;
  #drawn: { readonly counts: readonly TagCount[]; readonly chosen: string | undefined } | undefined;

  constructor(onChoose: (tag: string | undefined) => void) {
    this.#onChoose = onChoose;
    // On a phone the space is better used for the list.
    find<HTMLDetailsElement>("chart-box").open = matchMedia("(min-width: 60rem)").matches;
  }

  /** Does nothing if the counts are still the same array. */
  draw(counts: readonly TagCount[], chosen: string | undefined): void {
    if (this.#drawn?.counts === counts && this.#drawn.chosen === chosen) return;
    this.#drawn = { counts, chosen };
    this.#chart.replaceChildren(drawChart(counts));
    this.#drawChips(counts, chosen);
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
        make("span", { class: "amount" }, plants.toLocaleString("en")),
      );
      chip.addEventListener("click", () => this.#onChoose(isChosen ? undefined : tag));
      return chip;
    });
    if (counts.length > chipsMax) chips.push(this.#makeToggle(counts, chosen));
    this.#chips.replaceChildren(...chips);
    chips.find((chip) => hadFocus !== undefined && chip.dataset.tag === hadFocus)?.focus();
  }

  #makeToggle(counts: readonly TagCount[], chosen: string | undefined): HTMLButtonElement {
    const label = this.#areAllShown ? "Fewer tags" : `All ${count(counts.length, "tag")}`;
    const toggle = make("button", { type: "button", class: "link", "data-tag": "toggle" }, label);
    toggle.addEventListener("click", () => {
      this.#areAllShown = !this.#areAllShown;
      this.#drawChips(counts, chosen);
    });
    return toggle;
  }
}

function nameTag(tag: string): string {
  return tag === "" ? "no tag" : tag;
}

const width = 280;
const barHeight = 6;
const lineHeight = 34;

/** Horizontal bars, longest first; the remaining tags are summed up below them. */
function drawChart(counts: readonly TagCount[]): SVGElement {
  const bars = counts.slice(0, barsMax);
  const rest = counts.slice(barsMax);
  const lines: [label: string, plants: number][] = bars.map(([tag, plants]) => [
    nameTag(tag),
    plants,
  ]);
  if (rest.length > 0) {
    const plants = rest.reduce((sum, [, each]) => sum + each, 0);
    lines.push([count(rest.length, "other tag"), plants]);
  }
  const summary = lines.map(([label, plants]) => `${label} ${plants}`).join(", ");
  const chart = makeSvg("svg", {
    role: "img",
    "aria-label": `Plants by tag: ${summary || "none"}.`,
    viewBox: `0 0 ${width} ${Math.max(1, lines.length) * lineHeight}`,
  });
  for (const [index, [label, plants]] of lines.entries()) {
    const y = index * lineHeight;
    chart.append(
      makeSvg("text", { x: 0, y: y + 14 }, shorten(label)),
      makeSvg("text", { x: width, y: y + 14, class: "figure" }, plants.toLocaleString("en")),
    );
    const length = Math.max(2, (plants / (bars[0]?.[1] ?? 1)) * width);
    if (index < bars.length) chart.append(drawBar("track", y, width), drawBar("bar", y, length));
  }
  return chart;
}

function drawBar(kind: string, y: number, length: number): SVGElement {
  return makeSvg("rect", {
    class: kind,
    x: 0,
    y: y + 21,
    width: length,
    height: barHeight,
    rx: barHeight / 2,
  });
}

const labelCharactersMax = 30;

function shorten(label: string): string {
  const characters = [...label];
  if (characters.length <= labelCharactersMax) return label;
  return `${characters.slice(0, labelCharactersMax - 1).join("")}…`;
}
