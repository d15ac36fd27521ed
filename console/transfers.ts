/** Imports a file of plants, after a preview, and exports plants as CSV. */
import { computed, signal } from "@preact/signals";
import type { FileCheck } from "../client/files/check.ts";
import { renderCount } from "../client/files/renderer.ts";
import type { RefusedRow, ValidRow } from "../client/files/rows.ts";
import { makeIdempotencyKey } from "../client/plant-store.ts";
import { type Api, describeError, type Query } from "./api.ts";
import { announcement, type Message, message } from "./message.ts";

/** Most people never need it, so the page loads it when it's used. */
const loadFiles = () => import("./files.ts");

const samplesMax = 5;
const progressMs = 100;

export interface TransferAction {
  readonly label: string;
  readonly run: () => void;
}

/** What the card of a transfer says. */
export interface TransferCard {
  readonly title: Message;
  readonly note: string;
  /** From 0 to 1, or `null` while nobody knows. Absent unless it's running. */
  readonly progress?: number | null;
  /** Rows that are invalid or were refused. */
  readonly problems?: readonly RefusedRow[];
  /** The first rows of a file. */
  readonly samples?: readonly ValidRow[];
  /** What to do next. */
  readonly actions: readonly TransferAction[];
}

/** What a transfer ends with. */
interface Result extends Omit<TransferCard, "title" | "progress" | "actions"> {
  readonly actions?: readonly TransferAction[];
  readonly closeLabel?: string;
  /** Comes after "Close", so that Enter doesn't choose it. */
  readonly undo?: TransferAction | undefined;
}

/** Shows how far the work is, with a share from 0 to 1 if that is known. */
type ShowProgress = (note: string, share?: number) => void;

interface TransferPage {
  /** The plants to export. */
  readonly query: () => Query;
  /** Plants were added or deleted. */
  readonly onChanged: () => void;
  readonly chooseFile: () => void;
  readonly download: (file: Blob, name: string) => void;
}

/** A file whose rows are all valid. */
interface Source {
  readonly name: string;
  readonly rows: readonly ValidRow[];
  /** The same for every file with these rows. */
  readonly contentKey: string;
}

export class Transfers {
  readonly #api: Api;
  readonly #page: TransferPage;
  /** The keys of files that are imported once more, by what is in them. */
  readonly #newKeys = new Map<string, string>();
  readonly card = signal<TransferCard | undefined>();
  readonly isRunning = computed(() => this.card.value?.progress !== undefined);

  constructor(api: Api, page: TransferPage) {
    this.#api = api;
    this.#page = page;
  }

  /** Runs work that can be stopped. Shows its progress, and its result or why it failed. */
  async #run(
    title: Message,
    work: (stop: AbortSignal, showProgress: ShowProgress) => Promise<Result>,
  ): Promise<void> {
    if (this.isRunning.value) return;
    const running = new AbortController();
    const { signal } = running;
    const stop = { label: "Stop", run: () => running.abort() };
    const shown: TransferCard = { title, note: "", progress: null, actions: [stop] };
    this.card.value = shown;
    const result: Result = await work(signal, (note, share) => {
      this.card.value = { ...shown, note, progress: share ?? null };
    }).catch((error) => ({ note: signal.aborted ? "Stopped." : describeError(error) }));
    const { actions = [], closeLabel = "Close", undo, ...content } = result;
    const close = {
      label: closeLabel,
      run: () => {
        this.card.value = undefined;
      },
    };
    const next = [...actions, close, ...(undo ? [undo] : [])];
    this.card.value = { ...content, title, actions: next };
    announcement.value = content.note;
  }

  /** Checks the file and shows what an import would send. */
  async preview(file: File): Promise<void> {
    const { name } = file;
    await this.#run(message`Import “${name}”`, async (signal, showProgress) => {
      showProgress("Checking the file…");
      const { checkRows, formatOf, readRows } = await loadFiles();
      const bytes = new Uint8Array(await file.arrayBuffer());
      const check = await checkRows(readRows([bytes], formatOf(name) ?? "csv"), signal);
      return await this.#describeCheck(name, check);
    });
  }

  async #describeCheck(name: string, check: FileCheck): Promise<Result> {
    const { describeInvalid, makeImportKey } = await loadFiles();
    const { valid, invalid } = check;
    const content = { samples: valid.slice(0, samplesMax), closeLabel: "Cancel" };
    if (invalid.length > 0) {
      const chooseAgain = { label: "Choose the file again", run: this.#page.chooseFile };
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
    await this.#run(message`Import “${name}”`, async (signal, showProgress) => {
      const { describeImport, Importer } = await loadFiles();
      const added: bigint[] = [];
      const key = this.#newKeys.get(contentKey) ?? contentKey;
      const importer = new Importer(this.#api, { key, signal, onAdded: (id) => added.push(id) });
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
      if (added.length > 0) this.#page.onChanged();
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

  #againAction(source: Source): TransferAction {
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

  #undoAction(source: Source, ids: readonly bigint[]): TransferAction {
    const label = `Undo: delete ${ids.length === 1 ? "this plant" : `these ${renderCount(ids.length, "plant")}`}`;
    return { label, run: () => void this.#undo(source, ids) };
  }

  async #undo(source: Source, ids: readonly bigint[]): Promise<void> {
    this.#renewKey(source);
    await this.#run(message`Undo the import of “${source.name}”`, async (stop, showProgress) => {
      showProgress(`Deleting ${renderCount(ids.length, "plant")}…`);
      try {
        const results = await this.#api.deleteMany(ids, { signal: stop });
        const deleted = results.filter(({ status }) => status === 204).length;
        return { note: `The import was undone: ${renderCount(deleted, "plant")} deleted.` };
      } catch (error) {
        const reason = stop.aborted ? "Stopped." : describeError(error);
        return {
          note: `${reason} Some plants may be left.`,
          undo: this.#undoAction(source, ids),
        };
      } finally {
        this.#page.onChanged();
      }
    });
  }

  /** Browsers keep blobs outside of the page's memory, so each page becomes one at once. */
  async export(): Promise<void> {
    const query = this.#page.query();
    await this.#run(message`Export`, async (stop, showProgress) => {
      const { PlantRenderer } = await loadFiles();
      const renderer = new PlantRenderer("csv");
      const parts = [new Blob([renderer.header()])];
      let exported = 0;
      for await (const page of this.#api.listPages(query, { signal: stop })) {
        parts.push(new Blob([renderer.page(page)]));
        exported += page.length;
        showProgress(`${renderCount(exported, "plant")} so far`);
      }
      this.#page.download(new Blob(parts, { type: "text/csv" }), nameFile(query));
      const warning = renderer.warning === undefined ? "" : ` ${renderer.warning}`;
      return { note: `Exported ${renderCount(exported, "plant")}.${warning}` };
    });
  }
}

function nameFile({ tag, q }: Query): string {
  const which = tag === "" ? ["untagged-plants"] : ["plants", tag];
  return `${[...which, q].filter(Boolean).join("-")}.csv`;
}
