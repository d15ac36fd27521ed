/** Imports a file of plants, after a preview, and exports plants as CSV. */
import { checkRows, type FileCheck, sortRows } from "../plant-file/check.ts";
import { Importer, StorageFullError } from "../plant-file/importer.ts";
import { PlantRenderer } from "../plant-file/renderer.ts";
import { formatOf, PlantFileError, type Row, readPlants } from "../plant-file/rows.ts";
import { describeImport, describeInvalid, renderCount } from "../plant-file/words.ts";
import { describeError, type Host, type Query } from "./api.ts";
import { find, make, message } from "./elements.ts";
import {
  type CardAction,
  type CardContent,
  type ShowProgress,
  TransferCard,
} from "./transfer-card.ts";

const chunkBytes = 64 * 1024;
const listedMax = 1_000;
const progressMs = 100;

export interface TransferEvents extends Host {
  /** The plants to export. */
  readonly query: () => Query;
  /** Plants were added or deleted. */
  readonly onChanged: () => void;
}

/** A file that was checked. */
interface Source {
  readonly name: string;
  readonly read: () => Iterable<Row>;
  readonly check: FileCheck;
}

export class Transfers {
  readonly #events: TransferEvents;
  readonly #file = find<HTMLInputElement>("import-file");
  readonly #card = new TransferCard();
  /** How many imports of a file were undone: its rows may be others by now. */
  readonly #undone = new Map<string, number>();

  constructor(events: TransferEvents) {
    this.#events = events;
    for (const opener of ["choose-file", "first-file"]) {
      find(opener).addEventListener("click", () => this.#file.click());
    }
    this.#file.addEventListener("change", () => {
      const [file] = this.#file.files ?? [];
      if (file) void this.#preview(file);
      // So that choosing the same file again is a change, too.
      this.#file.value = "";
    });
    find("export").addEventListener("click", () => void this.#export());
  }

  /** Forgets what the last person did. */
  reset(): void {
    this.#card.reset();
    this.#undone.clear();
  }

  /** Runs work on the card, which also shows why it failed. */
  async #run(
    title: Node,
    work: (stop: AbortSignal, showProgress: ShowProgress) => Promise<CardContent>,
  ): Promise<void> {
    await this.#card.run(title, async (stop, showProgress) => {
      try {
        return await work(stop, showProgress);
      } catch (error) {
        if (this.#events.onError(error)) return undefined;
        return { note: stop.aborted ? "Stopped." : describeError(error) };
      }
    });
  }

  /** Nothing is sent before somebody has seen what would be. */
  async #preview(file: File): Promise<void> {
    const { name } = file;
    const chooseAgain = { label: "Choose the file again", run: () => this.#file.click() };
    await this.#run(message`Import “${name}”`, async (signal, showProgress) => {
      showProgress("Checking the file…");
      const bytes = new Uint8Array(await file.arrayBuffer());
      const read = () => readPlants(toChunks(bytes), formatOf(name) ?? "csv");
      try {
        const check = await checkRows(read(), { listedMax, signal });
        return this.#describeCheck({ name, read, check }, chooseAgain);
      } catch (error) {
        if (!(error instanceof PlantFileError)) throw error;
        return { note: error.message, actions: [chooseAgain], closeLabel: "Cancel" };
      }
    });
  }

  #describeCheck(source: Source, chooseAgain: CardAction): CardContent {
    const { rows, invalid, listed, samples, end } = source.check;
    const valid = rows - invalid;
    if (rows === 0) return { note: "The file has no plants.", actions: [chooseAgain] };
    const begin = (label: string) => ({ label, run: () => void this.#import(source) });
    const content = { samples, closeLabel: "Cancel" };
    if (invalid === 0) {
      const note = `${renderCount(rows, "row")}, ${rows === 1 ? "" : "all "}valid. Nothing was sent yet.`;
      return { ...content, note, actions: [begin(`Add ${renderCount(valid, "plant")}`)] };
    }
    const canSkip = end === undefined && valid > 0;
    const them = invalid === 1 ? "it" : "them";
    const advice = `Fix ${them} and choose the file again${canSkip ? ", or add the rest" : ""}.`;
    return {
      ...content,
      note: `${describeInvalid(source.check)} ${advice}`,
      problems: listed,
      problemsTotal: invalid,
      actions: canSkip
        ? [chooseAgain, begin(`Add the other ${renderCount(valid, "plant")}`)]
        : [chooseAgain],
    };
  }

  async #import({ name, read, check }: Source): Promise<void> {
    const added: bigint[] = [];
    const importer = new Importer(this.#events.api().store, {
      batch: name,
      undone: this.#undone.get(name) ?? 0,
      batchAdvice: "to add this one too, rename the file",
      isStopping: false,
      // So ids are assigned in the order of the rows.
      concurrency: 1,
      onAdded: (id) => added.push(id),
    });
    await this.#run(message`Import “${name}”`, async (stop, showProgress) => {
      stop.addEventListener("abort", () => importer.cancel());
      const valid = check.rows - check.invalid;
      const show = () => {
        const done = importer.stored + importer.alreadyThere + importer.refused.length;
        showProgress(`${renderCount(done, "plant")} of ${renderCount(valid)}`, done / valid);
      };
      show();
      const timer = setInterval(show, progressMs);
      const startedAtMs = performance.now();
      let failure = "";
      try {
        await importer.send(read, check);
      } catch (error) {
        if (this.#events.onError(error)) throw error;
        failure = error instanceof StorageFullError ? error.message : describeError(error);
      } finally {
        clearInterval(timer);
      }
      if (added.length > 0) this.#events.onChanged();
      const refused = sortRows([...check.listed, ...importer.refused]);
      const refusedTotal = check.invalid + importer.refused.length;
      const goOn = "Import the same file again to go on: no plant is added twice.";
      const parts = [
        importer.isCancelled && failure === "" ? "Stopped." : failure,
        describeImport(importer, refusedTotal, performance.now() - startedAtMs),
        importer.isCancelled && importer.unconfirmed === 0 ? goOn : "",
      ];
      return {
        note: parts.filter(Boolean).join(" "),
        problems: refused,
        problemsTotal: refusedTotal,
        undo: added.length > 0 ? this.#undoAction(name, added) : undefined,
      };
    });
  }

  #undoAction(name: string, ids: readonly bigint[]): CardAction {
    const label = `Undo: delete ${ids.length === 1 ? "this plant" : `these ${renderCount(ids.length, "plant")}`}`;
    return { label, run: () => void this.#undo(name, ids) };
  }

  async #undo(name: string, ids: readonly bigint[]): Promise<void> {
    const { api, onChanged, onError } = this.#events;
    this.#undone.set(name, (this.#undone.get(name) ?? 0) + 1);
    await this.#run(message`Undo the import of “${name}”`, async (stop, showProgress) => {
      showProgress(`Deleting ${renderCount(ids.length, "plant")}…`);
      try {
        const deleted = await api().deleteMany(ids, stop);
        return { note: `The import was undone: ${renderCount(deleted.length, "plant")} deleted.` };
      } catch (error) {
        if (onError(error)) throw error;
        const reason = stop.aborted ? "Stopped." : describeError(error);
        return { note: `${reason} Some plants may be left.`, undo: this.#undoAction(name, ids) };
      } finally {
        onChanged();
      }
    });
  }

  /** Each page becomes a blob at once: browsers keep those outside of the page's memory. */
  async #export(): Promise<void> {
    const query = this.#events.query();
    await this.#run(message`Export`, async (stop, showProgress) => {
      const renderer = new PlantRenderer("csv");
      const parts = [new Blob([renderer.header()])];
      let exported = 0;
      for await (const page of this.#events.api().pages(query, { stop })) {
        parts.push(new Blob([renderer.page(page)]));
        exported += page.length;
        showProgress(`${renderCount(exported, "plant")} so far`);
      }
      download(new Blob(parts, { type: "text/csv" }), nameFile(query));
      const warning = renderer.warning === undefined ? "" : ` ${renderer.warning}`;
      return { note: `Exported ${renderCount(exported, "plant")}.${warning}` };
    });
  }
}

function* toChunks(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

function nameFile({ tag, q }: Query): string {
  const which = tag === "" ? ["untagged-plants"] : ["plants", tag];
  return `${[...which, q].filter(Boolean).join("-")}.csv`;
}

function download(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  make("a", { href, download: name }).click();
  // The browser may still be about to read it.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
