/** Sends the rows of a checked file. The same file sent again adds no plant twice. */

import { makeIdempotencyKey, type Plant, type PlantStore } from "../plant-store.ts";
import { hasCode } from "../problem-error.ts";
import { renderDraft, toBulks } from "../wire-text.ts";
import { fieldNames } from "./csv.ts";
import { renderCount, renderDuration } from "./renderer.ts";
import type { RefusedRow, ValidRow } from "./rows.ts";

/** The service takes no more plants, whatever they are. */
export class StorageFullError extends Error {}

interface ImportOptions {
  /** Recognizes rows without ids that an earlier import with the same key has added. */
  readonly key: string;
  readonly signal: AbortSignal;
  /** Called for each plant that this import added. */
  readonly onAdded?: (id: bigint) => void;
}

const idMin = -(2n ** 63n);
const pageSize = 1_000;

export class Importer {
  stored = 0;
  /** Added earlier, and still there. */
  alreadyThere = 0;
  /** Added by an earlier import of the same file, and deleted since. */
  deletedSince = 0;
  readonly refused: RefusedRow[] = [];
  /** Whether every row was sent. */
  isDone = false;
  /** Whether the import goes beyond what an earlier one has sent, in the same order. */
  #isFurther = false;
  readonly #store: PlantStore;
  readonly #options: ImportOptions;

  constructor(store: PlantStore, options: ImportOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** How many rows have a result by now. */
  get done(): number {
    return this.stored + this.alreadyThere + this.deletedSince + this.refused.length;
  }

  /** Throws the first failure that isn't about a single row. */
  async send(rows: readonly ValidRow[]): Promise<void> {
    // Rows with ids go first: the service could assign their ids to other rows. They need no key
    // that a later import knows, because an id can't be added twice.
    const withoutIds = rows.filter((row) => !hasId(row));
    try {
      await this.#sendRows(rows.filter(hasId), makeIdempotencyKey());
      await this.#sendRows(withoutIds, this.#options.key);
    } catch (error) {
      // The response says that nothing was changed. That is true of its request, not of the import.
      if (!hasCode(error, "storage-full")) throw error;
      throw new StorageFullError("The service's disk is full. Make room there.");
    }
    this.isDone = true;
  }

  /**
   * A bulk and its key depend only on the rows, so a later import sends the same bulks: see
   * `bulkItemsMax` before you change how they are cut.
   */
  async #sendRows(rows: readonly ValidRow[], key: string): Promise<void> {
    let sent = 0;
    for await (const { length } of toBulks(rows, ({ draft }) => renderDraft(draft))) {
      await this.#sendBulk(rows.slice(sent, sent + length), `${key}.${sent}`);
      sent += length;
    }
  }

  async #sendBulk(rows: readonly ValidRow[], idempotencyKey: string): Promise<void> {
    const { signal } = this.#options;
    const drafts = rows.map(({ draft }) => draft);
    const results = await this.#store.createMany(drafts, { idempotencyKey, signal });
    const taken = new Map<ValidRow, bigint>();
    const replayed: bigint[] = [];
    let fullDetail: string | undefined;
    for (const [index, result] of results.entries()) {
      const row = rows[index] as ValidRow;
      if (result.status === 507) fullDetail = result.detail;
      else if (result.status === 409 && hasId(row)) taken.set(row, BigInt(row.draft.id ?? 0));
      else if (result.status !== 201) this.#refuse(row, result.detail);
      // Otherwise, it was added by an earlier try of this same request.
      else if (result.replayed && !hasId(row) && !this.#isFurther) replayed.push(result.id);
      else this.#add(result.id);
    }
    this.#isFurther ||= results.some(
      (result, index) =>
        result.status === 201 && !result.replayed && !hasId(rows[index] as ValidRow),
    );
    const there = await this.#find([...taken.values(), ...replayed]);
    for (const [row, id] of taken) this.#compare(row, id, there.get(id));
    for (const id of replayed) {
      if (there.has(id)) this.alreadyThere++;
      else this.deletedSince++;
    }
    if (fullDetail !== undefined) throw new StorageFullError(fullDetail);
  }

  #add(id: bigint): void {
    this.stored++;
    this.#options.onAdded?.(id);
  }

  #compare(row: ValidRow, id: bigint, plant: Plant | undefined): void {
    const isSame = fieldNames.every(
      (field) => field === "id" || plant?.[field] === (row.draft[field] ?? ""),
    );
    if (isSame) this.alreadyThere++;
    else this.#refuse(row, `another plant has the id ${id}`);
  }

  #refuse({ draft, ...line }: ValidRow, error: string): void {
    this.refused.push({ ...line, error });
  }

  /** The plants that have these ids. Ids that are close to each other take few requests. */
  async #find(ids: readonly bigint[]): Promise<Map<bigint, Plant>> {
    const found = new Map<bigint, Plant>();
    let left = ids.toSorted((a, b) => (a < b ? -1 : 1));
    for (let first = left[0]; first !== undefined; first = left[0]) {
      const { plants } = await this.#store.page({
        after: first === idMin ? undefined : first - 1n,
        limit: Math.min(pageSize, left.length),
        signal: this.#options.signal,
      });
      for (const plant of plants) found.set(plant.id, plant);
      const last = plants.at(-1)?.id;
      left = last === undefined ? [] : left.filter((id) => id > last);
    }
    return found;
  }
}

function hasId({ draft }: ValidRow): boolean {
  return draft.id !== undefined;
}

/**
 * The key of an import, from what the rows say. Two FNV-1a hashes of 32 bits: browsers deny their
 * own hashes to pages loaded over plain HTTP. If two files ever had the same key, the service would
 * refuse the rows that differ.
 */
export function makeImportKey(rows: readonly ValidRow[]): string {
  let high = 0x811c9dc5;
  let low = 0x41c6ce57;
  for (const { draft } of rows) {
    const text = `${renderDraft(draft)}\n`;
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index);
      high = Math.imul(high ^ unit, 0x01000193);
      low = Math.imul(low ^ unit, 0x5f356495);
    }
  }
  return `import-${toHex(high)}${toHex(low)}`;
}

function toHex(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, "0");
}

/** What an import did, in a sentence or more. */
export function describeImport(importer: Importer, elapsedMs: number): string {
  const { stored, alreadyThere, deletedSince, refused } = importer;
  const parts = [`Added ${renderCount(stored, "plant")} in ${renderDuration(elapsedMs)}.`];
  const say = (count: number, noun: string | undefined, rest: string) => {
    const verb = count === 1 ? "was" : "were";
    if (count > 0) parts.push(`${renderCount(count, noun)} ${verb} ${rest}.`);
  };
  say(alreadyThere, undefined, "already there");
  say(deletedSince, undefined, "added by an earlier import and deleted since");
  say(refused.length, "row", "refused");
  return parts.join(" ");
}
