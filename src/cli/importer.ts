/** Sends rows to a service, many in a request. Safe to repeat: no row makes a second plant. */
import {
  type CreateResult,
  type Plant,
  type PlantDraft,
  type PlantStore,
  PlantStoreProblem,
} from "../client/plant-store.ts";
import type { Row } from "../plant-file/rows.ts";
import { CliError, exitCodes } from "./cli-error.ts";
import { describeErrors } from "./service-client.ts";

export interface ImportOptions {
  /** A row without an id is recognized by this name and its place in the file. */
  readonly batch: string;
  /** Whether the first refused row ends the import. */
  readonly isStopping: boolean;
  /** How many requests are in flight. */
  readonly concurrency: number;
}

export type ValidRow = Extract<Row, { draft: unknown }>;
export type RefusedRow = Extract<Row, { error: unknown }>;
type Refusal = Exclude<CreateResult, { status: 201 }>;

/**
 * Rows in a request. So many fit into one whatever they hold, so where the next request starts
 * depends on nothing but the number of rows, also after some were fixed.
 */
export const requestRows = 512;

/** Keeps the place of a row that isn't sent: the service refuses it and remembers nothing. */
const gap: PlantDraft = { name: "" };

const idMin = -(2n ** 63n);

export class Importer {
  stored = 0;
  /** Stored unchanged by an earlier run. */
  alreadyThere = 0;
  /** Sent, without a response that says what became of them. */
  unconfirmed = 0;
  readonly refused: RefusedRow[];
  readonly #store: PlantStore;
  readonly #options: ImportOptions;
  readonly #cancelling = new AbortController();
  /** The first problem that isn't about a single row. */
  #failure: unknown;

  /** `refused` are rows that are not even sent. */
  constructor(store: PlantStore, options: ImportOptions, refused: readonly RefusedRow[]) {
    this.#store = store;
    this.#options = options;
    this.refused = [...refused];
  }

  get isCancelled(): boolean {
    return this.#cancelling.signal.aborted;
  }

  /** Whether no further row is to be sent. */
  get isStopped(): boolean {
    if (this.isCancelled || this.#failure !== undefined) return true;
    return this.#options.isStopping && this.refused.length > 0;
  }

  /** Abandons the requests in flight, too. */
  cancel(): void {
    this.#cancelling.abort();
  }

  /** Sends rows that have an id. */
  sendWithIds(rows: Iterable<ValidRow>): Promise<void> {
    return this.#sendAll(rows, async (group) => {
      const results = await this.#create(group);
      const taken: ValidRow[] = [];
      for (const [index, row] of group.entries()) {
        const result = results[index] as CreateResult;
        if (result.status === 201) this.stored++;
        else if (result.status === 409) taken.push(row);
        else this.#refuse(row, result);
      }
      if (taken.length > 0) await this.#compare(taken);
    });
  }

  /**
   * Sends rows without an id; in the place of any other row there is nothing. A later run sends the
   * same rows with the same keys, so the service recognizes them.
   */
  sendWithoutIds(rows: Iterable<ValidRow | undefined>): Promise<void> {
    return this.#sendAll(rows, async (group, number) => {
      if (!group.some((row) => row !== undefined)) return;
      const results = await this.#create(group, this.#keyOf(number));
      for (const [index, row] of group.entries()) {
        const result = results[index] as CreateResult;
        if (row === undefined) continue;
        if (result.status !== 201) this.#refuse(row, result);
        else if (result.replayed) this.alreadyThere++;
        else this.stored++;
      }
    });
  }

  async #create(
    group: readonly (ValidRow | undefined)[],
    idempotencyKey?: string,
  ): Promise<CreateResult[]> {
    const { signal } = this.#cancelling;
    const drafts = group.map((row) => row?.draft ?? gap);
    try {
      return await this.#store.createMany(drafts, { signal, idempotencyKey });
    } catch (error) {
      if (!isRefusal(error)) this.unconfirmed += group.filter((row) => row !== undefined).length;
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
      while (!this.isStopped) {
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
    if (this.#failure !== undefined) throw this.#failure;
  }

  #refuse(row: ValidRow, refusal: Refusal): void {
    // It would affect every row that follows.
    if (refusal.code === "storage-full") throw new CliError(refusal.detail, exitCodes.unavailable);
    this.refused.push(toRefused(row, describeRefusal(refusal)));
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

  /** The plants with these ids. Ids that are close to each other take few requests. */
  async #find(ids: readonly bigint[]): Promise<Map<bigint, Plant>> {
    const found = new Map<bigint, Plant>();
    let left = ids.toSorted((a, b) => (a < b ? -1 : 1));
    for (let first = left[0]; first !== undefined; first = left[0]) {
      const { plants } = await this.#store.page({
        after: first === idMin ? undefined : first - 1n,
        limit: left.length,
        signal: this.#cancelling.signal,
      });
      for (const plant of plants) found.set(plant.id, plant);
      const last = plants.at(-1)?.id;
      left = last === undefined ? [] : left.filter((id) => id > last);
    }
    return found;
  }

  #keyOf(request: number): string {
    const known = JSON.stringify([this.#options.batch, request]);
    return `import-${new Bun.CryptoHasher("sha256").update(known).digest("hex")}`;
  }
}

function toRefused({ draft, ...origin }: ValidRow, error: string): RefusedRow {
  return detach({ ...origin, error });
}

/** A part of a string keeps the whole in memory: here, a chunk of the file. */
export function detach(row: RefusedRow): RefusedRow {
  return { ...row, source: Buffer.from(row.source).toString() };
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
  // A `CliError` says that its storage is full.
  return error instanceof CliError || (error instanceof PlantStoreProblem && error.status < 500);
}

function describeRefusal(refusal: Refusal): string {
  if (refusal.code !== "idempotency-mismatch") return describeErrors(refusal);
  return (
    "an earlier import stored another plant for this row; to store this one too, choose another " +
    "name with --batch"
  );
}
