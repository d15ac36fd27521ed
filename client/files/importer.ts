/**
 * Sends the rows of a checked file, and counts what becomes of them. The same file sent again adds no
 * plant twice.
 *
 *     a bulk is sent ──▶ its results are counted ──▶ rows that the service knew are compared
 *
 * A bulk is pending until its outcome is known. Whatever ends an import, the pending bulk says how
 * many plants it may have added beyond the ones that are counted.
 */

import { renderBounds, renderCount, renderDuration } from "../../src/shared/text.ts";
import {
  type CreateResult,
  type ManyOptions,
  makeIdempotencyKey,
  type Plant,
  type PlantStore,
} from "../plant-store.ts";
import { hasCode, isRefused } from "../problem-error.ts";
import { renderDraft, toBulks } from "../wire-text.ts";
import { fieldNames } from "./csv.ts";
import { findPlants } from "./found-plants.ts";
import { renderPlant } from "./renderer.ts";
import type { RefusedRow, ValidRow } from "./rows.ts";
import type { Stop } from "./stop.ts";

/** The service takes no more plants, whatever they are. */
export class StorageFullError extends Error {}

interface ImportOptions {
  /** Recognizes rows without ids that an earlier import with the same key has added. */
  readonly key: string;
  /** The import asks for it itself if it can't go on but has something to find out. */
  readonly stop: Stop;
  /** Called for each plant that this import added. */
  readonly onAdded?: (plant: Plant) => void;
}

/** Rows that go into one request. */
interface Bulk {
  readonly rows: readonly ValidRow[];
  /** Repeating the request with it gives the same results. */
  readonly idempotencyKey: string;
  /** Whether an earlier request may have stored some of it. */
  readonly wasSent?: boolean;
}

/** Of a row that the service knew: the plant with its id has to be looked at. */
interface Known {
  readonly id: bigint;
  /** Whether this import may have added it. */
  readonly mayBeOwn: boolean;
}

type KnownRow = Known & { readonly row: ValidRow };

/** What a result says of its row. */
type Meaning =
  | { readonly kind: "added"; readonly id: bigint }
  | ({ readonly kind: "known" } & Known)
  | { readonly kind: "refused" | "full"; readonly detail: string };

/** The service assigns ids up to this one. */
const assignedIdMax = 2n ** 52n;

export class Importer {
  /** Plants that this import added, at least. */
  stored = 0;
  /** Added earlier, and still there. */
  alreadyThere = 0;
  /** Added by an earlier import of the same file, and deleted since. */
  deletedSince = 0;
  readonly refused: RefusedRow[] = [];
  /** Whether every row was sent. */
  isDone = false;
  /** Its outcome is unknown. */
  #pending: Bulk | undefined;
  /** Rows that haven't been looked at yet. */
  #known: KnownRow[] = [];
  /** The highest assigned id before the first row without an id was sent. */
  #lastIdBefore = 0n;
  readonly #store: PlantStore;
  readonly #options: ImportOptions;
  #calls: ManyOptions;

  constructor(store: PlantStore, options: ImportOptions) {
    this.#store = store;
    this.#options = options;
    this.#calls = { stop: options.stop.asked, signal: options.stop.over };
  }

  /** Plants that this import added, at most. More than `stored` if an outcome is unknown. */
  get storedMax(): number {
    const mayBeOwn = this.#known.filter((each) => each.mayBeOwn);
    return this.stored + mayBeOwn.length + (this.#pending?.rows.length ?? 0);
  }

  /** Rows that the service knew, which the import couldn't compare with what is there any more. */
  get notCompared(): number {
    return this.#known.filter((each) => !each.mayBeOwn).length;
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
    await this.#sendRows(rows.filter(hasId), makeIdempotencyKey());
    if (withoutIds.length > 0) this.#lastIdBefore = await this.#readLastAssignedId();
    await this.#sendRows(withoutIds, this.#options.key);
    this.isDone = true;
  }

  /**
   * Finds out what became of the last request, after `send` has failed, by sending it once more. What
   * it hadn't stored is stored then.
   */
  async settle(): Promise<void> {
    this.#calls = {};
    try {
      if (this.#pending) await this.#sendBulk({ ...this.#pending, wasSent: true });
      else await this.#compareKnown();
    } catch (error) {
      const isSettled = error instanceof StorageFullError && !this.#pending;
      if (!isSettled) throw error;
    }
  }

  /**
   * A bulk and its key depend only on the rows, so a later import sends the same bulks: see
   * `bulkItemsMax` before you change how they are cut.
   */
  async #sendRows(rows: readonly ValidRow[], key: string): Promise<void> {
    let sent = 0;
    for await (const { length } of toBulks(rows, ({ draft }) => renderDraft(draft))) {
      const idempotencyKey = `${key}.${sent}`;
      await this.#sendBulk({ rows: rows.slice(sent, sent + length), idempotencyKey });
      sent += length;
    }
  }

  async #sendBulk(bulk: Bulk): Promise<void> {
    this.#pending = bulk;
    const results = await this.#create(bulk, this.#calls).catch((error) => this.#fail(bulk, error));
    const fullDetail = this.#count(bulk, results);
    await this.#compareKnown();
    if (fullDetail !== undefined) throw new StorageFullError(fullDetail);
  }

  #create({ rows, idempotencyKey }: Bulk, calls: ManyOptions): Promise<CreateResult[]> {
    const drafts = rows.map(({ draft }) => draft);
    return this.#store.createMany(drafts, { idempotencyKey, ...calls });
  }

  /** The bulk stays pending unless it's certain that nothing of it was stored, or how much. */
  async #fail(bulk: Bulk, error: unknown): Promise<never> {
    const isNotSent = error === this.#options.stop.asked.reason;
    if (!bulk.wasSent && (isNotSent || isRefused(error))) this.#pending = undefined;
    if (!hasCode(error, "storage-full")) throw error;
    const results = this.#pending ? await this.#findStored(bulk).catch(() => []) : [];
    if (results.length > 0) {
      this.#count(bulk, results);
      await this.#compareKnown();
    }
    throw new StorageFullError("The service's disk is full. Make room there.");
  }

  /**
   * The results of the rows that a full disk let through. The service stores a bulk in order, a part
   * at a time, so they come first: the same request with only these rows succeeds, and adds nothing.
   */
  async #findStored(bulk: Bulk): Promise<readonly CreateResult[]> {
    this.#options.stop.ask();
    let stored: readonly CreateResult[] = [];
    for (let end = bulk.rows.length; end - stored.length > 1; ) {
      const middle = Math.ceil((stored.length + end) / 2);
      const first = { ...bulk, rows: bulk.rows.slice(0, middle) };
      try {
        stored = await this.#create(first, { signal: this.#calls.signal });
      } catch (error) {
        if (!hasCode(error, "storage-full")) throw error;
        end = middle;
      }
    }
    return stored;
  }

  /** Returns what the service says if the garden is full. */
  #count({ rows }: Bulk, results: readonly CreateResult[]): string | undefined {
    let fullDetail: string | undefined;
    for (const [index, result] of results.entries()) {
      const row = rows[index] as ValidRow;
      const meaning = this.#classify(row, result);
      switch (meaning.kind) {
        case "added":
          this.#add(row, meaning.id);
          break;
        case "known":
          this.#known.push({ row, ...meaning });
          break;
        case "refused":
          this.#refuse(row, meaning.detail);
          break;
        case "full":
          fullDetail = meaning.detail;
      }
    }
    this.#pending = undefined;
    return fullDetail;
  }

  #classify({ draft }: ValidRow, result: CreateResult): Meaning {
    if (result.status === 201) {
      const { id, replayed } = result;
      // Rows with ids have a key that no earlier import had.
      if (!replayed || draft.id !== undefined) return { kind: "added", id };
      // An earlier import of the same file added it, or this one in a try whose response was lost.
      // Two imports of a file at the same time both count what either of them adds.
      return { kind: "known", id, mayBeOwn: id > this.#lastIdBefore };
    }
    const { status, detail } = result;
    if (status === 409 && draft.id !== undefined) {
      return { kind: "known", id: BigInt(draft.id), mayBeOwn: false };
    }
    return { kind: status === 507 ? "full" : "refused", detail };
  }

  #add({ draft: { name, tag = "" } }: ValidRow, id: bigint): void {
    this.stored++;
    this.#options.onAdded?.({ id, name, tag });
  }

  /** Looks at the plants of rows that the service knew. */
  async #compareKnown(): Promise<void> {
    const ids = this.#known.map(({ id }) => id);
    const there = await findPlants(this.#store, ids, this.#calls.signal);
    for (const known of this.#known) this.#compare(known, there.get(known.id));
    this.#known = [];
  }

  #compare({ row, id, mayBeOwn }: KnownRow, plant: Plant | undefined): void {
    if (hasId(row) && !isSame(row, plant)) this.#refuseTaken(row, id, plant);
    else if (!plant) this.deletedSince++;
    else if (mayBeOwn) this.#add(row, id);
    else this.alreadyThere++;
  }

  #refuse({ draft, ...line }: ValidRow, error: string): void {
    this.refused.push({ ...line, error });
  }

  #refuseTaken({ draft, ...line }: ValidRow, id: bigint, here: Plant | undefined): void {
    const error = here
      ? `plant ${id} is here as ${renderPlant(here)}`
      : `plant ${id} was here, and has been deleted since`;
    this.refused.push({ ...line, error, ...(here && { here }) });
  }

  async #readLastAssignedId(): Promise<bigint> {
    const { signal } = this.#calls;
    const options = { order: "desc", after: assignedIdMax + 1n, limit: 1, signal } as const;
    return (await this.#store.page(options)).plants[0]?.id ?? 0n;
  }
}

function isSame({ draft }: ValidRow, plant: Plant | undefined): boolean {
  return fieldNames.every((field) => field === "id" || plant?.[field] === (draft[field] ?? ""));
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
  const { stored, storedMax, alreadyThere, deletedSince, refused, notCompared } = importer;
  const added = renderBounds(stored, storedMax, "plant");
  const parts = [`Added ${added} in ${renderDuration(elapsedMs)}.`];
  if (storedMax > stored) parts.push("The outcome of the last request is unknown.");
  const say = (count: number, noun: string | undefined, rest: string) => {
    const verb = count === 1 ? "was" : "were";
    if (count > 0) parts.push(`${renderCount(count, noun)} ${verb} ${rest}.`);
  };
  say(alreadyThere, undefined, "already there");
  say(deletedSince, undefined, "added by an earlier import and deleted since");
  say(notCompared, "row", "not compared with what is there");
  say(refused.length, "row", "refused");
  return parts.join(" ");
}
