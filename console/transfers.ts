/** Imports a file of plants, after a preview, and exports plants as CSV. */
import { computed, signal } from "@preact/signals";
import { Deleter } from "../client/files/deleter.ts";
import type { Importer } from "../client/files/importer.ts";
import type { RefusedRow, ValidRow } from "../client/files/rows.ts";
import { Stop } from "../client/files/stop.ts";
import { renderCount } from "../src/shared/text.ts";
import { describeError, makeIdempotencyKey, type Plant, type Query } from "./api.ts";
import type { Garden } from "./garden.ts";
import { announcement, type Message, message, offerUndo } from "./message.ts";
import { describeBounds, describeVersion } from "./words.ts";

/** Most people never need it, so the page loads it when it's used. */
const loadFiles = () =>
  import("./files.ts").catch(() => {
    throw new Error("A part of this page couldn’t be loaded. Reload the page.");
  });

const progressMs = 100;

/** What the card of a transfer says. */
interface TransferCard {
  readonly title: Message;
  readonly note: Message;
  /** From 0 to 1, or `null` while nobody knows. Absent unless it's running. */
  readonly progress?: number | null;
  /** Rows that are invalid or were refused. */
  readonly problems?: readonly RefusedRow[];
  /** What to do next. */
  readonly actions: readonly { readonly label: string; readonly run: () => void }[];
}

/** What a transfer ends with. Its actions come before the button that closes the card. */
type Result = Omit<TransferCard, "title" | "progress">;

/** Shows how far the work is, with a share from 0 to 1 if that is known. */
type ShowProgress = (note: string, share?: number) => void;

const stopping = "Stopping…";

export class Transfers {
  /** The keys of files that are imported once more, by what is in them. */
  readonly #newKeys = new Map<string, string>();
  readonly card = signal<TransferCard | undefined>();
  readonly isRunning = computed(() => this.card.value?.progress !== undefined);

  constructor(readonly garden: Garden) {}

  /** Runs work that can be stopped. Shows its progress, and its result or why it failed. */
  async #run(
    title: Message,
    work: (showProgress: ShowProgress, stop: Stop) => Promise<Result>,
  ): Promise<void> {
    if (this.isRunning.value) return;
    const stop = new Stop();
    const showProgress: ShowProgress = (note, share) => {
      const label = stop.asked.aborted ? "Stop now" : "Stop";
      const actions = [{ label, run: () => stop.press() }];
      this.card.value = stop.asked.aborted
        ? { title, note: stopping, progress: null, actions }
        : { title, note, progress: share ?? null, actions };
    };
    showProgress("");
    const showStopping = () => {
      showProgress(stopping);
      announcement.value = stopping;
    };
    stop.asked.addEventListener("abort", showStopping);
    const result = await work(showProgress, stop).catch((error): Result => {
      return { note: describeEnd(error), actions: [] };
    });
    stop.asked.removeEventListener("abort", showStopping);
    const close = () => {
      this.card.value = undefined;
    };
    const actions = [...result.actions, { label: "Close", run: close }];
    this.card.value = { ...result, title, actions };
    announcement.value = result.note;
  }

  /** Checks the file and shows what an import would send. */
  async preview(file: File): Promise<void> {
    const { name } = file;
    await this.#run(message`Import “${name}”`, async (showProgress, stop) => {
      showProgress("Checking the file…");
      const { checkRows, describeInvalid, formatOf, makeImportKey, readRows } = await loadFiles();
      const bytes = new Uint8Array(await file.arrayBuffer());
      const check = await checkRows(readRows([bytes], formatOf(name) ?? "csv"), stop.asked);
      const { valid: rows, invalid: problems } = check;
      if (problems.length > 0) return { note: describeInvalid(check), problems, actions: [] };
      if (rows.length === 0) return { note: "The file has no plants.", actions: [] };
      const send = () => void this.#import(name, rows, makeImportKey(rows));
      const label = `Add ${renderCount(rows.length, "plant")}`;
      return { note: describeRows(rows), actions: [{ label, run: send }] };
    });
  }

  /** The key is the same for every file with these rows. */
  async #import(name: string, rows: readonly ValidRow[], contentKey: string): Promise<void> {
    await this.#run(message`Import “${name}”`, async (showProgress, stop) => {
      const { describeImport, Importer } = await loadFiles();
      const added: bigint[] = [];
      const key = this.#newKeys.get(contentKey) ?? contentKey;
      const onAdded = (id: bigint) => added.push(id);
      const importer = new Importer(this.garden.api.patient, { key, stop, onAdded });
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
        parts.push(describeEnd(error));
      } finally {
        clearInterval(timer);
      }
      if (importer.storedMax > 0) this.#offerUndo(name, contentKey, importer, added);
      parts.push(describeImport(importer, performance.now() - startedAtMs));
      if (!importer.isDone)
        parts.push("Import the same file again to go on: no plant is added twice.");
      const again = () => {
        this.#renewKey(contentKey);
        void this.#import(name, rows, contentKey);
      };
      const more = [{ label: "Import the whole file once more", run: again }];
      const actions = importer.deletedSince > 0 ? more : [];
      return { note: parts.join(" "), problems: importer.refused, actions };
    });
  }

  /** `added` gets the ids of plants that the importer finds out about later. */
  #offerUndo(name: string, contentKey: string, importer: Importer, added: bigint[]): void {
    void this.garden.refresh();
    const { stored, storedMax } = importer;
    const what = `${describeBounds(stored, storedMax)} ${storedMax === 1 ? "was" : "were"}`;
    const deleter = new Deleter(this.garden.api, added);
    offerUndo(message`${[what]} imported from “${name}”.`, async () => {
      this.#renewKey(contentKey);
      await importer.settle();
      await deleter.run();
      void this.garden.refresh();
      return `The import was undone: ${renderCount(deleter.deleted, "plant")} deleted.`;
    });
  }

  /** From now on, this page takes what is in the file for new plants. */
  #renewKey(contentKey: string): void {
    this.#newKeys.set(contentKey, `${contentKey}-${makeIdempotencyKey()}`);
  }

  /**
   * Exports the list, or only these of its plants. Browsers keep blobs outside of the page's memory,
   * so each page becomes one at once.
   */
  async export(
    download: (file: Blob, name: string) => void,
    selected?: readonly Plant[],
  ): Promise<void> {
    const { request } = this.garden.list.value;
    await this.#run("Export", async (showProgress, stop) => {
      const { PlantRenderer } = await loadFiles();
      const renderer = new PlantRenderer("csv");
      const parts = [new Blob([renderer.header()])];
      let exported = 0;
      const pages = selected
        ? [selected]
        : this.garden.api.listPages(request, { signal: stop.asked });
      for await (const page of pages) {
        parts.push(new Blob([renderer.page(page)]));
        exported += page.length;
        showProgress(`${renderCount(exported, "plant")} so far`);
      }
      const name = selected ? "selected-plants.csv" : nameFile(request);
      download(new Blob(parts, { type: "text/csv" }), name);
      const note = `Exported ${renderCount(exported, "plant")}. ${renderer.warning ?? ""}`.trim();
      return { note, actions: [] };
    });
  }
}

/** By name: a stop has more than one reason. */
function describeEnd(error: unknown): string {
  return (error as Error).name === "AbortError" ? "Stopped." : describeError(error);
}

/** Its first plant shows whether the columns are right. */
function describeRows(rows: readonly ValidRow[]): Message {
  const [{ draft }] = rows as [ValidRow];
  const { id, name, tag = "" } = draft;
  const count = `${renderCount(rows.length, "row")}, ${rows.length === 1 ? "" : "all "}valid.`;
  const which = id === undefined ? "" : `, with the id ${id}`;
  const first = message`The file starts with ${describeVersion({ name, tag })}${[which]}.`;
  return [count, " ", first, " Nothing was sent yet."];
}

function nameFile({ tag, q }: Query): string {
  const which = tag === "" ? ["untagged-plants"] : ["plants", tag];
  return `${[...which, q].filter(Boolean).join("-")}.csv`;
}
