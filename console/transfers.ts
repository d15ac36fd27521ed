/** Imports a file of plants, after a preview, and exports plants as CSV. */
import { checkRows, type FileCheck, sortRows } from "../client/files/check.ts";
import { Importer } from "../client/files/importer.ts";
import { PlantRenderer } from "../client/files/renderer.ts";
import { formatOf, type Row, readRows } from "../client/files/rows.ts";
import { describeImport, describeInvalid } from "../client/files/words.ts";
import { renderCount } from "../src/wording.ts";
import { describeError, type Query } from "./api.ts";
import { find, make, message } from "./elements.ts";
import { api } from "./session.ts";
import { type CardAction, type CardContent, TransferCard } from "./transfer-card.ts";

const listedMax = 1_000;
const progressMs = 100;

interface TransferEvents {
  /** The plants to export. */
  readonly query: () => Query;
  /** Plants were added or deleted. */
  readonly onChanged: () => void;
}

/** A checked file. */
interface Source {
  readonly name: string;
  readonly read: () => Iterable<Row>;
  readonly check: FileCheck;
}

export class Transfers {
  readonly #events: TransferEvents;
  readonly #file = find<HTMLInputElement>("import-file");
  readonly #card = new TransferCard();
  /** How many imports of each file were undone. Its rows may have changed since. */
  readonly #undone = new Map<string, number>();

  constructor(events: TransferEvents) {
    this.#events = events;
    for (const opener of ["choose-file", "first-file"]) {
      find(opener).addEventListener("click", () => this.#file.click());
    }
    this.#file.addEventListener("change", () => {
      const [file] = this.#file.files ?? [];
      if (file) void this.#preview(file);
      // Otherwise choosing the same file again would not be a change.
      this.#file.value = "";
    });
    find("export").addEventListener("click", () => void this.#export());
  }

  /** Checks the file and shows what an import would send. */
  async #preview(file: File): Promise<void> {
    const { name } = file;
    await this.#card.run(message`Import “${name}”`, async (signal, showProgress) => {
      showProgress("Checking the file…");
      const bytes = new Uint8Array(await file.arrayBuffer());
      const read = () => readRows([bytes], formatOf(name) ?? "csv");
      const check = await checkRows(read(), { listedMax, signal });
      return this.#describeCheck({ name, read, check });
    });
  }

  #describeCheck(source: Source): CardContent {
    const chooseAgain = { label: "Choose the file again", run: () => this.#file.click() };
    const { rows, invalid, listed, samples, unreadable } = source.check;
    const valid = rows - invalid;
    if (rows === 0) return { note: "The file has no plants." };
    const begin = (label: string) => ({ label, run: () => void this.#import(source) });
    const content = { samples, closeLabel: "Cancel" };
    if (invalid === 0) {
      const note = `${renderCount(rows, "row")}, ${rows === 1 ? "" : "all "}valid. Nothing was sent yet.`;
      return { ...content, note, actions: [begin(`Add ${renderCount(valid, "plant")}`)] };
    }
    const canSkip = unreadable === undefined && valid > 0;
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
    const importer = new Importer(api, {
      batch: name,
      undone: this.#undone.get(name) ?? 0,
      batchAdvice: "to add this one too, rename the file",
      isStopping: false,
      // The service then assigns ids in the order of the rows.
      concurrency: 1,
      onAdded: (id) => added.push(id),
    });
    await this.#card.run(message`Import “${name}”`, async (stop, showProgress) => {
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
        failure = describeError(error);
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
    this.#undone.set(name, (this.#undone.get(name) ?? 0) + 1);
    await this.#card.run(message`Undo the import of “${name}”`, async (stop, showProgress) => {
      showProgress(`Deleting ${renderCount(ids.length, "plant")}…`);
      try {
        const results = await api.deleteMany(ids, { signal: stop });
        const deleted = results.filter(({ status }) => status === 204).length;
        return { note: `The import was undone: ${renderCount(deleted, "plant")} deleted.` };
      } catch (error) {
        const reason = stop.aborted ? "Stopped." : describeError(error);
        return { note: `${reason} Some plants may be left.`, undo: this.#undoAction(name, ids) };
      } finally {
        this.#events.onChanged();
      }
    });
  }

  /** Browsers keep blobs outside of the page's memory, so each page becomes one at once. */
  async #export(): Promise<void> {
    const query = this.#events.query();
    await this.#card.run(message`Export`, async (stop, showProgress) => {
      const renderer = new PlantRenderer("csv");
      const parts = [new Blob([renderer.header()])];
      let exported = 0;
      for await (const page of api.listPages(query, { signal: stop })) {
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

function nameFile({ tag, q }: Query): string {
  const which = tag === "" ? ["untagged-plants"] : ["plants", tag];
  return `${[...which, q].filter(Boolean).join("-")}.csv`;
}

function download(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  make("a", { href, download: name }).click();
  // The browser may not have read it yet.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
