/** Imports a file of plants and exports the plants as CSV, with progress and a report. */
import { renderCsvHeader, renderCsvPlant } from "../plant-file/csv.ts";
import { PlantFileError } from "../plant-file/records.ts";
import { type Row, readPlants } from "../plant-file/rows.ts";
import { type Api, type CreateResult, describeError, makeIdempotencyKey } from "./api.ts";
import { announce, count, find, make, message, show } from "./elements.ts";

/** Few enough that the progress moves, and others' requests get in between. */
const batchRows = 2_000;
const chunkBytes = 64 * 1024;
const refusedShownMax = 50;

type ValidRow = Pick<Extract<Row, { draft: unknown }>, "line" | "draft">;
type RefusedRow = Pick<Extract<Row, { error: unknown }>, "line" | "error">;

export interface TransferEvents {
  readonly api: () => Api;
  /** The tag to export; all plants if absent. */
  readonly tag: () => string | undefined;
  readonly onImported: () => void;
  /** True if the page has handled the error, and the report need not show it. */
  readonly onError: (error: unknown) => boolean;
}

export class Transfers {
  readonly #events: TransferEvents;
  readonly #file = find<HTMLInputElement>("import-file");
  readonly #button = find<HTMLButtonElement>("transfer-button");
  readonly #progress = find<HTMLProgressElement>("transfer-progress");
  #running: AbortController | undefined;
  /** Keys of imports that did not finish: the same file continues where it stopped. */
  readonly #pendingKeys = new Map<string, string>();

  constructor(events: TransferEvents) {
    this.#events = events;
    for (const opener of ["choose-file", "first-file"]) {
      find(opener).addEventListener("click", () => this.#file.click());
    }
    this.#file.addEventListener("change", () => {
      const [file] = this.#file.files ?? [];
      if (file) {
        const work = (stop: AbortSignal) => this.#import(file, stop);
        const advice = "Import the same file again to continue: no plant is added twice.";
        void this.#run(message`Import of ${file.name}`, work, advice);
      }
      // So that choosing the same file again is a change, too.
      this.#file.value = "";
    });
    find("export").addEventListener("click", () => {
      void this.#run(message`Export`, (stop) => this.#export(stop));
    });
    this.#button.addEventListener("click", () => {
      if (this.#running) return this.#running.abort();
      show(find("transfer"), false);
      find("garden-title").focus();
    });
  }

  /** For the next person. */
  reset(): void {
    this.#running?.abort();
    this.#running = undefined;
    this.#pendingKeys.clear();
    show(find("transfer"), false);
  }

  /** `work` resolves to a report. The advice is for when it failed or was stopped. */
  async #run(
    title: Node,
    work: (stop: AbortSignal) => Promise<string>,
    advice = "",
  ): Promise<void> {
    if (this.#running) return;
    const running = new AbortController();
    this.#running = running;
    find("transfer-title").replaceChildren(title);
    find("transfer-refused").replaceChildren();
    this.#progress.removeAttribute("value");
    this.#report("Starting…");
    this.#button.textContent = "Stop";
    show(this.#progress, true);
    show(find("transfer"), true);
    this.#button.focus();
    let outcome: string;
    try {
      outcome = await work(running.signal);
    } catch (error) {
      if (running === this.#running && this.#events.onError(error)) return;
      const reason = running.signal.aborted ? "" : describeError(error);
      const isUnreadable = error instanceof PlantFileError;
      outcome = isUnreadable ? reason : ["Stopped.", reason, advice].filter(Boolean).join(" ");
    }
    // After signing out nobody is waiting for it.
    if (running !== this.#running) return;
    this.#running = undefined;
    this.#report(outcome);
    announce(outcome);
    this.#button.textContent = "Close";
    show(this.#progress, false);
  }

  #report(text: string): void {
    find("transfer-note").textContent = text;
  }

  async #import(file: File, stop: AbortSignal): Promise<string> {
    const api = this.#events.api();
    const bytes = new Uint8Array(await file.arrayBuffer());
    const rows = Array.from(readPlants(toChunks(bytes), /\.csv$/i.test(file.name)), checkTypes);
    const refused = rows.filter((row) => "error" in row);
    const valid = rows.filter((row) => "draft" in row);
    // First the rows with an id: the service could assign it to one of the others.
    const hasId = ({ draft }: ValidRow) => draft.id !== undefined;
    const ordered = [...valid.filter(hasId), ...valid.filter((row) => !hasId(row))];
    const fileId = `${file.name} ${file.size} ${file.lastModified}`;
    const key = this.#pendingKeys.get(fileId) ?? makeIdempotencyKey();
    this.#pendingKeys.set(fileId, key);
    let added = 0;
    try {
      for (let at = 0; at < ordered.length; at += batchRows) {
        this.#progress.value = at / ordered.length;
        this.#report(`${count(added, "plant")} added so far, of ${count(rows.length, "row")}.`);
        const batch = ordered.slice(at, at + batchRows);
        const drafts = batch.map(({ draft }) => draft);
        const results = await api.createMany(drafts, `${key}.${at}`, stop);
        const refusedHere = results.flatMap((result, index) => toRefused(result, batch[index]));
        added += results.length - refusedHere.length;
        refused.push(...refusedHere);
      }
    } finally {
      showRefused(refused);
      if (added > 0) this.#events.onImported();
    }
    this.#pendingKeys.delete(fileId);
    const refusals = refused.length === 0 ? "" : ` ${count(refused.length, "row")} refused:`;
    return `${count(added, "plant")} added.${refusals}`;
  }

  /** Each page becomes a blob at once: browsers keep those outside of the page's memory. */
  async #export(stop: AbortSignal): Promise<string> {
    const tag = this.#events.tag();
    const parts = [new Blob([renderCsvHeader()])];
    let exported = 0;
    for await (const page of this.#events.api().pages(tag, stop)) {
      parts.push(new Blob([page.map(renderCsvPlant).join("")]));
      exported += page.length;
      this.#report(`${count(exported, "plant")} so far`);
    }
    download(new Blob(parts, { type: "text/csv" }), tag ? `plants-${tag}.csv` : "plants.csv");
    return `${count(exported, "plant")} exported.`;
  }
}

function* toChunks(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

/** Drops the source. Finds what can't be sent as a plant at all; the service checks the rest. */
function checkTypes(row: Row): ValidRow | RefusedRow {
  const { line } = row;
  if ("error" in row) return { line, error: row.error };
  const { draft } = row;
  const { name, tag, id } = draft;
  const areTexts = typeof name === "string" && typeof (tag ?? "") === "string";
  if (areTexts && (id === undefined || typeof id === "bigint")) return { line, draft };
  return { line, error: "name and tag must be strings, and id a whole number" };
}

function toRefused(result: CreateResult, row: ValidRow | undefined): RefusedRow[] {
  if (result.status === 201 || !row) return [];
  const errors = result.errors?.map(({ pointer = "", detail }) => `${pointer.slice(1)} ${detail}`);
  return [{ line: row.line, error: errors?.join("; ") ?? result.detail }];
}

function showRefused(refused: readonly RefusedRow[]): void {
  const inOrder = refused.toSorted((a, b) => a.line - b.line);
  const items = inOrder
    .slice(0, refusedShownMax)
    .map(({ line, error }) => make("li", {}, `Line ${line}: ${error}`));
  const more = refused.length - items.length;
  if (more > 0) items.push(make("li", {}, `And ${count(more, "more row")}.`));
  find("transfer-refused").replaceChildren(...items);
}

function download(file: Blob, name: string): void {
  const href = URL.createObjectURL(file);
  make("a", { href, download: name }).click();
  // The browser may still be about to read it.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
