/** The card that shows an import or export: its progress, what is wrong with rows, what to do. */
import type { RefusedRow, ValidRow } from "../plant-file/rows.ts";
import { renderCount, renderLine } from "../plant-file/words.ts";
import { announce, find, make, show } from "./elements.ts";

const problemsShownMax = 50;

export interface CardAction {
  readonly label: string;
  readonly run: () => void;
}

export interface CardContent {
  readonly note: string;
  /** Rows that are invalid or were refused. */
  readonly problems?: readonly RefusedRow[];
  /** How many there are, if not all of them are given. */
  readonly problemsTotal?: number;
  /** The first rows of a file. */
  readonly samples?: readonly ValidRow[];
  /** What to do next. The first of all buttons has the focus. */
  readonly actions?: readonly CardAction[];
  readonly closeLabel?: string;
  /** Offered after "Close", so that Enter doesn't choose it. */
  readonly undo?: CardAction | undefined;
}

/** Shows how far the work is: a text, and a share from 0 to 1 if it is known. */
export type ShowProgress = (note: string, share?: number) => void;

export class TransferCard {
  readonly #card = find("transfer");
  readonly #progress = find<HTMLProgressElement>("transfer-progress");
  readonly #openers = ["choose-file", "first-file", "export"].map((id) =>
    find<HTMLButtonElement>(id),
  );
  #running: AbortController | undefined;

  /** Stops what is running. Nothing that it reports later is shown. */
  reset(): void {
    this.#running?.abort();
    this.#setRunning(undefined);
    show(this.#card, false);
  }

  /** Runs work that can be stopped. Its result is shown, unless `reset` was called. */
  async run(
    title: Node,
    work: (stop: AbortSignal, showProgress: ShowProgress) => Promise<CardContent | undefined>,
  ): Promise<void> {
    if (this.#running) return;
    const running = new AbortController();
    this.#setRunning(running);
    find("transfer-title").replaceChildren(title);
    this.#draw({ note: "" }, [{ label: "Stop", run: () => running.abort() }]);
    this.#progress.removeAttribute("value");
    show(this.#progress, true);
    const content = await work(running.signal, (note, share) => {
      if (running !== this.#running) return;
      find("transfer-note").textContent = note;
      if (share !== undefined) this.#progress.value = share;
    });
    if (running !== this.#running || !content) return;
    this.#setRunning(undefined);
    show(this.#progress, false);
    const { actions = [], closeLabel = "Close", undo } = content;
    const close = { label: closeLabel, run: () => this.#close() };
    this.#draw(content, [...actions, close, ...(undo ? [undo] : [])]);
    announce(content.note);
  }

  #close(): void {
    show(this.#card, false);
    find("garden-title").focus();
  }

  #setRunning(running: AbortController | undefined): void {
    this.#running = running;
    for (const opener of this.#openers) opener.disabled = running !== undefined;
  }

  #draw(content: CardContent, actions: readonly CardAction[]): void {
    const { note, problems = [], problemsTotal = problems.length, samples = [] } = content;
    find("transfer-note").textContent = note;
    find("transfer-problems").replaceChildren(...drawProblems(problems, problemsTotal));
    find("transfer-samples").replaceChildren(...samples.map(drawSample));
    find("transfer-caption").textContent = `The first ${renderCount(samples.length, "row")}`;
    show(find("transfer-preview"), samples.length > 0);
    const buttons = actions.map(({ label, run }, index) => {
      const kind = index === 0 && actions.length > 1 ? "primary" : "";
      const button = make("button", { type: "button", class: kind }, label);
      button.addEventListener("click", run);
      return button;
    });
    find("transfer-actions").replaceChildren(...buttons);
    show(this.#card, true);
    buttons[0]?.focus();
  }
}

function drawProblems(problems: readonly RefusedRow[], total: number): HTMLElement[] {
  const items = problems.slice(0, problemsShownMax).map((row) => {
    const place = renderLine(row).replace("line", "Line");
    return make("li", {}, make("b", {}, place), " ", make("span", {}, row.error));
  });
  const more = total - items.length;
  if (more > 0) items.push(make("li", {}, `… and ${renderCount(more, "more row")}`));
  return items;
}

function drawSample({ draft }: ValidRow): HTMLElement {
  const { id, name, tag = "" } = draft;
  return make(
    "tr",
    {},
    make("td", { class: id === undefined ? "untagged" : "" }, String(id ?? "next free")),
    make("td", {}, make("bdi", {}, name)),
    make("td", {}, make("bdi", {}, tag)),
  );
}
