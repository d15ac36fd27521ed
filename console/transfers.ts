/** Imports a file of plants, after a preview, and exports plants as CSV. */
import { checkRows, describeInvalid, type FileCheck } from "../client/files/check.ts";
import { describeImport, Importer, makeImportKey } from "../client/files/importer.ts";
import { PlantRenderer, renderCount } from "../client/files/renderer.ts";
import { formatOf, readRows, type ValidRow } from "../client/files/rows.ts";
import { makeIdempotencyKey } from "../client/plant-store.ts";
import { describeError, type Query } from "./api.ts";
import { find, make, message } from "./elements.ts";
import { api } from "./session.ts";
import { type CardAction, type CardContent, TransferCard } from "./transfer-card.ts";

const samplesMax = 5;
const progressMs = 100;

interface TransferEvents {
  /** The plants to export. */
  readonly query: () => Query;
  /** Plants were added or deleted. */
  readonly onChanged: () => void;
}

/** A file whose rows are all valid. */
interface Source {
  readonly name: string;
  readonly rows: readonly ValidRow[];
  /** The same for every file with these rows. */
  readonly contentKey: string;
}

export class Transfers {
  readonly #events: TransferEvents;
  readonly #file = find<HTMLInputElement>("import-file");
  readonly #card = new TransferCard();
  /** The keys of files that are imported once more, by what is in them. */
  readonly #newKeys = new Map<string, string>();

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
      const check = await checkRows(readRows([bytes], formatOf(name) ?? "csv"), signal);
      return this.#describeCheck(name, check);
    });
  }

  #describeCheck(name: string, check: FileCheck): CardContent {
    const { valid, invalid } = check;
    const content = { samples: valid.slice(0, samplesMax), closeLabel: "Cancel" };
    if (invalid.length > 0) {
      const chooseAgain = { label: "Choose the file again", run: () => this.#file.click() };
      const note = describeInvalid(check);
      return { ...content, note, problems: invalid, actions: [chooseAgain] };
    }
    if (valid.length === 0) return { note: "The file has no plants." };
    const source = { name, rows: valid, contentKey: makeImportKey(valid) };
    const all = valid.length === 1 ? "" : "all ";
    const note = `${renderCount(valid.length, "row")}, ${all}valid. Nothing was sent yet.`;
    const label = `Add ${renderCount(valid.length, "plant")}`;
    return { ...content, note, actions: [{ label, run: () => void this.#import(source) }] };
  }

  async #import(source: Source): Promise<void> {
    const { name, rows, contentKey } = source;
    await this.#card.run(message`Import “${name}”`, async (signal, showProgress) => {
      const added: bigint[] = [];
      const key = this.#newKeys.get(contentKey) ?? contentKey;
      const importer = new Importer(api, { key, signal, onAdded: (id) => added.push(id) });
      const show = () => {
        const done = `${renderCount(importer.done, "plant")} of ${renderCount(rows.length)}`;
        showProgress(done, importer.done / rows.length);
      };
      show();
      const timer = setInterval(show, progressMs);
      const startedAtMs = performance.now();
      const parts: string[] = [];
      try {
        await importer.send(rows);
      } catch (error) {
        parts.push(signal.aborted ? "Stopped." : describeError(error));
      } finally {
        clearInterval(timer);
      }
      if (added.length > 0) this.#events.onChanged();
      parts.push(describeImport(importer, performance.now() - startedAtMs));
      if (!importer.isDone)
        parts.push("Import the same file again to go on: no plant is added twice.");
      return {
        note: parts.join(" "),
        problems: importer.refused,
        actions: importer.deletedSince > 0 ? [this.#againAction(source)] : [],
        undo: added.length > 0 ? this.#undoAction(source, added) : undefined,
      };
    });
  }

  #againAction(source: Source): CardAction {
    const run = () => {
      this.#renewKey(source);
      void this.#import(source);
    };
    return { label: "Import the whole file once more", run };
  }

  /** From now on, this page takes what is in the file for new plants. */
  #renewKey({ contentKey }: Source): void {
    this.#newKeys.set(contentKey, `${contentKey}-${makeIdempotencyKey()}`);
  }

  #undoAction(source: Source, ids: readonly bigint[]): CardAction {
    const label = `Undo: delete ${ids.length === 1 ? "this plant" : `these ${renderCount(ids.length, "plant")}`}`;
    return { label, run: () => void this.#undo(source, ids) };
  }

  async #undo(source: Source, ids: readonly bigint[]): Promise<void> {
    this.#renewKey(source);
    await this.#card.run(
      message`Undo the import of “${source.name}”`,
      async (stop, showProgress) => {
        showProgress(`Deleting ${renderCount(ids.length, "plant")}…`);
        try {
          const results = await api.deleteMany(ids, { signal: stop });
          const deleted = results.filter(({ status }) => status === 204).length;
          return { note: `The import was undone: ${renderCount(deleted, "plant")} deleted.` };
        } catch (error) {
          const reason = stop.aborted ? "Stopped." : describeError(error);
          return {
            note: `${reason} Some plants may be left.`,
            undo: this.#undoAction(source, ids),
          };
        } finally {
          this.#events.onChanged();
        }
      },
    );
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
