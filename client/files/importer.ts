/** Sends rows to a service, many in a request. Safe to repeat: no row makes a second plant. */
import {
  type CreateResult,
  type Plant,
  type PlantDraft,
  type PlantStore,
  PlantStoreProblem,
} from "../plant-store.ts";
import { hasCode } from "../problem-error.ts";
import { type FileCheck, validate } from "./check.ts";
import type { RefusedRow, Row, ValidRow } from "./rows.ts";

interface ImportOptions {
  /** A row without an id is recognized by this name and its place in the file. */
  readonly batch: string;
  /** How many earlier imports of this batch were undone, as far as is known. */
  readonly undone?: number;
  /** How to get around a name that was used for other rows. */
  readonly batchAdvice: string;
  /** Whether the first refused row ends the import. */
  readonly isStopping: boolean;
  /** How many requests are in flight. */
  readonly concurrency: number;
  /** Called for each plant that this import added. */
  readonly onAdded?: (id: bigint) => void;
}

type Refusal = Exclude<CreateResult, { status: 201 }>;

/**
 * Rows per request. Even the longest rows fit, so a row's request depends only on its number in the
 * file, even after other rows were fixed.
 */
export const requestRows = 512;

const placeholder = { name: "Placeholder of an import that is running" };

const idMin = -(2n ** 63n);
/** The service never assigns it. */
const placeholderId = -1n;

const diskFull =
  "The service's disk is full. Make room there, then import the same file again: no plant is added twice.";

/** The service takes no more plants, whatever they are. */
export class StorageFullError extends Error {}

export class Importer {
  stored = 0;
  /** Found unchanged: added earlier. */
  alreadyThere = 0;
  /** Sent, and may have been added: no response says so. */
  unconfirmed = 0;
  /** Refused by the service. */
  readonly refused: RefusedRow[] = [];
  readonly #store: PlantStore;
  readonly #options: ImportOptions;
  readonly #cancelling = new AbortController();
  /** The first problem that isn't about a single row. */
  #failure: unknown;
  #fillerId: Promise<bigint> | undefined;
  #placeholderId: bigint | undefined;

  constructor(store: PlantStore, options: ImportOptions) {
    this.#store = store;
    this.#options = options;
  }

  get isCancelled(): boolean {
    return this.#cancelling.signal.aborted;
  }

  /** Whether no further row is to be sent. */
  get #isStopped(): boolean {
    if (this.isCancelled || this.#failure !== undefined) return true;
    return this.#options.isStopping && this.refused.length > 0;
  }

  /** Abandons the requests in flight, too. */
  cancel(): void {
    this.#cancelling.abort();
  }

  /**
   * Sends the valid rows of a file: first those with an id, since the service could assign that id
   * to another row. Throws the first problem that isn't about a single row.
   */
  async send(read: () => Iterable<Row>, check: FileCheck): Promise<void> {
    const toValid = (row: Row): ValidRow | undefined => {
      const checked = check.invalid === 0 ? row : validate(row);
      return "draft" in checked ? checked : undefined;
    };
    function* rowsWithIds(): Generator<ValidRow> {
      for (const row of read()) {
        const valid = toValid(row);
        if (valid && valid.draft.id !== undefined) yield valid;
      }
    }
    // Every row, so that each keeps its number.
    function* allRows(): Generator<ValidRow | undefined> {
      for (const row of read()) yield toValid(row);
    }
    try {
      if (check.withId > 0) await this.#sendAll(rowsWithIds(), (group) => this.#sendWithIds(group));
      if (check.withoutId > 0) {
        await this.#sendAll(allRows(), (group, number) => this.#sendWithoutIds(group, number));
      }
    } finally {
      // If the service doesn't respond any more, the placeholder's name says what it is.
      if (this.#placeholderId !== undefined) {
        await this.#store.delete(this.#placeholderId).catch(() => {});
      }
    }
  }

  async #sendWithIds(group: readonly ValidRow[]): Promise<void> {
    const drafts = group.map(({ draft }) => draft);
    const results = await this.#create(drafts, group.length);
    const taken: ValidRow[] = [];
    for (const [index, row] of group.entries()) {
      const result = results[index] as CreateResult;
      if (result.status === 201) this.#count(result.id);
      else if (result.status === 409) taken.push(row);
      else this.#refuse(row, result);
    }
    if (taken.length > 0) await this.#compare(taken);
  }

  /**
   * The service recognizes a plant by its request's key and its place in the request, so every run
   * puts a row in the same place. Any other place gets a plant whose id is taken: the service
   * refuses it and doesn't remember it. If a recognized plant was deleted since, its row goes out
   * again under the next round's key.
   */
  async #sendWithoutIds(group: readonly (ValidRow | undefined)[], number: number): Promise<void> {
    // The rows with ids are stored by now.
    let pending = group.map((row) => (row?.draft.id === undefined ? row : undefined));
    let drafts = group.map((row) => row?.draft);
    for (let round = this.#options.undone ?? 0; ; round++) {
      const sent = pending.filter((row) => row !== undefined).length;
      if (sent === 0) return;
      const filled = await Promise.all(drafts.map((draft) => draft ?? this.#filler()));
      const results = await this.#create(filled, sent, this.#keyOf(number, round));
      const replayed: bigint[] = [];
      for (const [index, row] of pending.entries()) {
        const result = results[index] as CreateResult;
        if (row === undefined) continue;
        if (result.status !== 201) this.#refuse(row, result);
        else if (result.replayed) replayed.push(result.id);
        else this.#count(result.id);
      }
      const there = await this.#find(replayed);
      this.alreadyThere += there.size;
      pending = pending.map((row, index) => {
        const result = results[index] as CreateResult;
        const isGone = result.status === 201 && result.replayed && !there.has(result.id);
        return isGone ? row : undefined;
      });
      drafts = drafts.map((draft, index) => {
        const result = results[index] as CreateResult;
        if (!draft || pending[index] || draft.id !== undefined) return draft;
        return result.status === 201 ? { ...draft, id: result.id } : undefined;
      });
    }
  }

  async #filler(): Promise<PlantDraft> {
    this.#fillerId ??= this.#findTakenId();
    return { ...placeholder, id: await this.#fillerId };
  }

  /** Of any plant in the garden. In an empty one, a placeholder is there while the import runs. */
  async #findTakenId(): Promise<bigint> {
    const { signal } = this.#cancelling;
    const [plant] = (await this.#store.page({ limit: 1, signal })).plants;
    if (plant) return plant.id;
    const { id } = await this.#store.create({ ...placeholder, id: placeholderId }, { signal });
    this.#placeholderId = id;
    return id;
  }

  #count(id: bigint): void {
    this.stored++;
    this.#options.onAdded?.(id);
  }

  /** `rows` is how many of the drafts are rows that may be added. */
  async #create(
    drafts: readonly PlantDraft[],
    rows: number,
    idempotencyKey?: string,
  ): Promise<CreateResult[]> {
    const { signal } = this.#cancelling;
    try {
      return await this.#store.createMany(drafts, { signal, idempotencyKey });
    } catch (error) {
      if (!isRefusal(error)) this.unconfirmed += rows;
      throw error;
    }
  }

  /** Throws the first problem that isn't about a single row. */
  async #sendAll<Item>(
    rows: Iterable<Item>,
    send: (group: readonly Item[], number: number) => Promise<void>,
  ): Promise<void> {
    const iterator = rows[Symbol.iterator]();
    let next = 0;
    const work = async () => {
      while (!this.#isStopped) {
        const group = take(iterator, requestRows);
        if (group.length === 0) return;
        await send(group, next++);
      }
    };
    const fail = (error: unknown) => {
      // Whatever follows a cancellation is a consequence of it.
      if (!this.isCancelled) this.#failure ??= error;
      // A service that refuses also responds to the other requests in flight.
      if (!isRefusal(error)) this.cancel();
    };
    const workers = Array.from({ length: this.#options.concurrency }, () => work().catch(fail));
    await Promise.all(workers);
    // The response says that nothing was changed. That is true of its request, not of the import.
    if (hasCode(this.#failure, "storage-full")) throw new StorageFullError(diskFull);
    if (this.#failure !== undefined) throw this.#failure;
  }

  #refuse(row: ValidRow, refusal: Refusal): void {
    // It would affect every row that follows.
    if (refusal.code === "storage-full") throw new StorageFullError(refusal.detail);
    const isOther = refusal.code === "idempotency-mismatch";
    const reason = isOther
      ? `an earlier import added another plant for this row; ${this.#options.batchAdvice}`
      : refusal.detail;
    this.refused.push(toRefused(row, reason));
  }

  /** Rows whose ids are taken: by the same plant, or by another one. */
  async #compare(rows: readonly ValidRow[]): Promise<void> {
    const there = await this.#find(rows.map(({ draft }) => BigInt(draft.id ?? 0)));
    for (const row of rows) {
      const { draft } = row;
      const plant = there.get(BigInt(draft.id ?? 0));
      if (plant?.name === draft.name && plant.tag === (draft.tag ?? "")) this.alreadyThere++;
      else this.refused.push(toRefused(row, `another plant has the id ${draft.id}`));
    }
  }

  /** The plants that have these ids. Ids that are close to each other take few requests. */
  async #find(ids: readonly bigint[]): Promise<Map<bigint, Plant>> {
    const wanted = new Set(ids);
    const found = new Map<bigint, Plant>();
    let left = ids.toSorted((a, b) => (a < b ? -1 : 1));
    for (let first = left[0]; first !== undefined; first = left[0]) {
      const { plants } = await this.#store.page({
        after: first === idMin ? undefined : first - 1n,
        limit: left.length,
        signal: this.#cancelling.signal,
      });
      for (const plant of plants) if (wanted.has(plant.id)) found.set(plant.id, plant);
      const last = plants.at(-1)?.id;
      left = last === undefined ? [] : left.filter((id) => id > last);
    }
    return found;
  }

  #keyOf(request: number, round: number): string {
    const key = `import-${hashText(this.#options.batch)}-${request}`;
    return round === 0 ? key : `${key}-${round}`;
  }
}

/** FNV-1a with 64 bits. Browsers deny their own hashes to pages loaded over plain HTTP. */
function hashText(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, "0");
}

function toRefused({ draft, ...origin }: ValidRow, error: string): RefusedRow {
  return { ...origin, error };
}

function take<Item>(iterator: Iterator<Item>, count: number): Item[] {
  const items: Item[] = [];
  while (items.length < count) {
    const { value, done } = iterator.next();
    if (done) break;
    items.push(value);
  }
  return items;
}

/** Whether the service has responded, and said that it stores nothing. */
function isRefusal(error: unknown): boolean {
  if (error instanceof StorageFullError) return true;
  return error instanceof PlantStoreProblem && error.status < 500;
}
