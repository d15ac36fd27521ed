/** The card of an import or export: its progress, its result, and what to do next. */
import { renderLine } from "../client/files/check.ts";
import { renderCount } from "../client/files/renderer.ts";
import type { RefusedRow, ValidRow } from "../client/files/rows.ts";
import { describeError } from "./api.ts";
import { announce, find, make, show } from "./elements.ts";

/** A file with more invalid rows is wrong as a whole. */
const problemsShownMax = 1_000;

export interface CardAction {
  readonly label: string;
  readonly run: () => void;
}

export interface CardContent {
  readonly note: string;
  /** Rows that are invalid or were refused. */
  readonly problems?: readonly RefusedRow[];
  /** The first rows of a file. */
  readonly samples?: readonly ValidRow[];
  /** What to do next. The first button gets the focus. */
  readonly actions?: readonly CardAction[];
  readonly closeLabel?: string;
  /** Comes after "Close", so that Enter doesn't choose it. */
  readonly undo?: CardAction | undefined;
}

/** Shows how far the work is, with a share from 0 to 1 if that is known. */
type ShowProgress = (note: string, share?: number) => void;

export class TransferCard {
  readonly #card = find("transfer");
  readonly #progress = find<HTMLProgressElement>("transfer-progress");
  readonly #openers = ["choose-file", "first-file", "export"].map((id) =>
    find<HTMLButtonElement>(id),
  );

  /** Runs work that can be stopped. Shows its progress, and its result or why it failed. */
  async run(
    title: Node,
    work: (stop: AbortSignal, showProgress: ShowProgress) => Promise<CardContent>,
  ): Promise<void> {
    const running = new AbortController();
    const { signal } = running;
    for (const opener of this.#openers) opener.disabled = true;
    find("transfer-title").replaceChildren(title);
    this.#draw({ note: "" }, [{ label: "Stop", run: () => running.abort() }]);
    this.#progress.removeAttribute("value");
    show(this.#progress, true);
    const content = await work(signal, (note, share) => {
      find("transfer-note").textContent = note;
      if (share !== undefined) this.#progress.value = share;
    }).catch((error) => ({ note: signal.aborted ? "Stopped." : describeError(error) }));
    for (const opener of this.#openers) opener.disabled = false;
    show(this.#progress, false);
    const { actions = [], closeLabel = "Close", undo }: CardContent = content;
    const close = { label: closeLabel, run: () => this.#close() };
    this.#draw(content, [...actions, close, ...(undo ? [undo] : [])]);
    announce(content.note);
  }

  #close(): void {
    show(this.#card, false);
    find("garden-title").focus();
  }

  #draw(content: CardContent, actions: readonly CardAction[]): void {
    const { note, problems = [], samples = [] } = content;
    find("transfer-note").textContent = note;
    find("transfer-problems").replaceChildren(...drawProblems(problems));
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

function drawProblems(problems: readonly RefusedRow[]): HTMLElement[] {
  const items = problems.slice(0, problemsShownMax).map((row) => {
    const place = renderLine(row).replace("line", "Line");
    return make("li", {}, make("b", {}, place), " ", make("span", {}, row.error));
  });
  const more = problems.length - items.length;
  if (more > 0) items.push(make("li", {}, `… and ${renderCount(more, "more row")}`));
  return items;
}

function drawSample({ draft }: ValidRow): HTMLElement {
  const { id, name, tag = "" } = draft;
  return make(
    "tr",
    {},
    make("td", { class: id === undefined ? "absent" : "" }, String(id ?? "next free")),
    make("td", {}, make("bdi", {}, name)),
    make("td", {}, make("bdi", {}, tag)),
  );
}
