/**
 * Imports plants from a file or from pasted text. One card says how far it is:
 *
 *     what a file looks like ──▶ what would happen ──▶ progress ──▶ what happened, with its undo
 *
 * Nothing is sent before somebody has seen what would happen.
 */
import { computed, signal } from "@preact/signals";
import type { Comparison } from "../client/files/comparison.ts";
import type { Format, PlantUpdate, RefusedRow, Row, ValidRow } from "../client/files/rows.ts";
import { Stop } from "../client/files/stop.ts";
import type { Updater } from "../client/files/updater.ts";
import { renderCount } from "../src/shared/text.ts";
import { describeError } from "./api.ts";
import type { Garden } from "./garden.ts";
import type { ImportUndo } from "./import-undo.ts";
import { loadFiles } from "./load-files.ts";
import { announce, type Message, message, offerUndo, type UndoStep } from "./message.ts";
import { describeBounds } from "./words.ts";

const progressMs = 100;
const stopping = "Stopping…";

export type ImportCard =
  /** What a file looks like. */
  | { readonly kind: "format" }
  | {
      readonly kind: "running";
      readonly title: Message;
      readonly note: Message;
      /** From 0 to 1, or `null` while nobody knows. */
      readonly progress: number | null;
      readonly stop: Stop;
    }
  | Preview
  | Result;

/** What would happen. */
export interface Preview {
  readonly kind: "preview";
  readonly title: Message;
  readonly note: string;
  readonly comparison: Comparison;
  /** Whether plants that are here already are changed. */
  readonly isChanging: boolean;
  /** Whether rows that are plants here already are added once more. */
  readonly isRepeating: boolean;
}

/** What happened. */
interface Result {
  readonly kind: "result";
  readonly title: Message;
  readonly note: Message;
  /** Rows that are invalid or were refused. */
  readonly problems?: readonly RefusedRow[];
  readonly undo?: UndoStep;
  /** Whether nothing could be made of a file or text. */
  readonly isRefused?: boolean;
}

type ShowProgress = (note: string, share?: number) => void;

interface Source {
  readonly rows: Iterable<Row<PlantUpdate>>;
  readonly format: Format;
}

export class Imports {
  readonly card = signal<ImportCard | undefined>();
  readonly isRunning = computed(() => this.card.value?.kind === "running");
  /** Leaving the page now would leave part of an import behind, without its undo. */
  readonly isSending = signal(false);

  constructor(readonly garden: Garden) {}

  /** Says what a file looks like. */
  open(): void {
    if (!this.isRunning.value) this.card.value = { kind: "format" };
  }

  /** Closes the card, unless an import is running. Returns whether there was one to close. */
  close(): boolean {
    if (!this.card.value || this.isRunning.value) return false;
    this.card.value = undefined;
    return true;
  }

  preview(file: File): Promise<void> {
    const again = "import the file again";
    return this.#compare(message`Import “${file.name}”`, again, async () => {
      const { formatOf, readUpdateRows } = await loadFiles();
      const bytes = new Uint8Array(await file.arrayBuffer());
      const format = formatOf(file.name) ?? "csv";
      return { rows: readUpdateRows([bytes], format), format };
    });
  }

  previewText(text: string): Promise<void> {
    return this.#compare("Pasted plants", "paste again", async () => {
      const { readPastedRows } = await loadFiles();
      return { rows: readPastedRows(text), format: "csv" };
    });
  }

  /** Checks the rows and compares them with the plants that are here. */
  #compare(title: Message, again: string, read: () => Promise<Source>): Promise<void> {
    return this.#run(title, async (showProgress, stop): Promise<Preview | Result> => {
      showProgress("Checking the rows…");
      const { checkUpdateRows, Comparison, describeDifferences, describeInvalid } =
        await loadFiles();
      const { rows, format } = await read();
      const check = await checkUpdateRows(rows, stop.asked);
      const end = (note: string): Result => ({ kind: "result", title, note, isRefused: true });
      if (check.invalid.length > 0) {
        return { ...end(describeInvalid(check, again)), problems: check.invalid };
      }
      if (check.valid.length === 0) return end("There are no plants in it.");
      const comparison = new Comparison(check.valid, format);
      let compared = 0;
      for await (const plants of this.garden.api.patient.pages({ signal: stop.asked })) {
        comparison.take(plants);
        compared += plants.length;
        showProgress(`${renderCount(compared, "plant")} compared`);
      }
      comparison.finish();
      const note = `${describeDifferences(comparison)} Nothing was sent yet.`;
      return {
        kind: "preview",
        title,
        note,
        comparison,
        isChanging: false,
        isRepeating: false,
      };
    });
  }

  choose(choice: Partial<Pick<Preview, "isChanging" | "isRepeating">>): void {
    const card = this.card.value;
    if (card?.kind === "preview") this.card.value = { ...card, ...choice };
  }

  /** Does what the preview shows. */
  async send(): Promise<void> {
    const card = this.card.value;
    if (card?.kind !== "preview") return;
    await this.#run(card.title, async (showProgress, stop) => {
      const { describeUpdate, ImportUndo, Updater } = await loadFiles();
      const { comparison, title } = card;
      const plan = planOf(card);
      const undo = new ImportUndo(this.garden.api);
      const { onAdded, onChanged } = undo;
      const updater = new Updater(this.garden.api.patient, plan, { stop, onAdded, onChanged });
      const all = plan.added.length + plan.changes.length;
      const show = () => {
        const done = `${renderCount(updater.done)} of ${renderCount(all, "row")}`;
        showProgress(done, updater.done / all);
      };
      show();
      const timer = setInterval(show, progressMs);
      const startedAtMs = performance.now();
      const parts: string[] = [];
      this.isSending.value = true;
      try {
        await updater.send();
      } catch (error) {
        parts.push(describeEnd(error));
      } finally {
        this.isSending.value = false;
        clearInterval(timer);
      }
      parts.push(describeUpdate(updater, performance.now() - startedAtMs));
      const left = card.isChanging ? 0 : comparison.changes.length;
      if (left > 0) parts.push(describeLeft(left));
      if (!updater.isDone) parts.push(describeNext(updater, card));
      const problems = [...comparison.refused, ...updater.refused];
      const result = { kind: "result", title, note: parts.join(" "), problems } as const;
      if (updater.importer.storedMax + updater.changedMax === 0) return result;
      void this.garden.refresh();
      return { ...result, undo: this.#offerUndo(title, updater, undo) };
    });
  }

  #offerUndo(title: Message, updater: Updater, undo: ImportUndo): UndoStep {
    const step = offerUndo(describeDone(updater), async () => {
      const text = await undo.run(updater);
      void this.garden.refresh();
      const card = this.card.value;
      // The page says it in one place.
      if (card?.kind !== "result" || card.undo !== step) return text;
      this.card.value = { kind: "result", title, note: text };
      announce(text);
      return undefined;
    });
    return step;
  }

  /** Runs work that can be stopped. Shows its progress, and its result or why it failed. */
  async #run(
    title: Message,
    work: (showProgress: ShowProgress, stop: Stop) => Promise<ImportCard>,
  ): Promise<void> {
    if (this.isRunning.value) return;
    const stop = new Stop();
    const showProgress: ShowProgress = (text, share) => {
      const isStopping = stop.asked.aborted;
      const note = isStopping ? stopping : text;
      const progress = isStopping ? null : (share ?? null);
      this.card.value = { kind: "running", title, note, progress, stop };
    };
    showProgress("");
    const showStopping = () => {
      showProgress(stopping);
      announce(stopping);
    };
    stop.asked.addEventListener("abort", showStopping);
    const card = await work(showProgress, stop).catch((error): ImportCard => {
      return { kind: "result", title, note: describeEnd(error), isRefused: true };
    });
    stop.asked.removeEventListener("abort", showStopping);
    this.card.value = card;
    if ("note" in card) announce(card.note);
  }
}

/** What a preview would send, as somebody has chosen. */
function planOf({ comparison, isChanging, isRepeating }: Preview) {
  const { added, alreadyHere, changes, unchanged } = comparison;
  // A row without an id has a name.
  const repeated = isRepeating ? (alreadyHere as ValidRow[]) : [];
  return {
    added: [...added, ...repeated],
    changes: isChanging ? changes : [],
    unchanged: unchanged - repeated.length,
  };
}

/** `Add 3 and change 12 plants`. Absent if nothing would happen. */
export function describePlan(preview: Preview): string | undefined {
  const { added, changes } = planOf(preview);
  const plants = (count: number) => renderCount(count, "plant");
  if (added.length === 0 && changes.length === 0) return undefined;
  if (changes.length === 0) return `Add ${plants(added.length)}`;
  if (added.length === 0) return `Change ${plants(changes.length)}`;
  return `Add ${renderCount(added.length)} and change ${plants(changes.length)}`;
}

/** `3 plants were added. 12 plants were changed.` */
function describeDone({ changed, changedMax, importer }: Updater): string {
  const { stored, storedMax } = importer;
  const were = (most: number) => (most === 1 ? "was" : "were");
  const added = `${describeBounds(stored, storedMax)} ${were(storedMax)} added`;
  const changes = `${describeBounds(changed, changedMax)} ${were(changedMax)} changed`;
  if (changedMax === 0) return `${added}.`;
  return storedMax === 0 ? `${changes}.` : `${added}. ${changes}.`;
}

function describeLeft(count: number): string {
  const [differs, stays] =
    count === 1 ? ["differs", "stays as it is"] : ["differ", "stay as they are"];
  return `${renderCount(count, "plant")} that ${differs} ${stays}.`;
}

/** A comparison finds what is stored. It can't find what may still be on its way. */
function describeNext({ importer }: Updater, { isRepeating }: Preview): string {
  if (isRepeating) return "Look at what is here before you import it again.";
  const goOn = "Import it again to go on";
  return importer.storedMax > importer.stored ? `${goOn}.` : `${goOn}: no plant is added twice.`;
}

/** By name: a stop has more than one reason. */
function describeEnd(error: unknown): string {
  return (error as Error).name === "AbortError" ? "Stopped." : describeError(error);
}
