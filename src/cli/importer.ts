/** Sends rows to a service, many at a time. Safe to repeat: no row makes a second plant. */
import { type PlantDraft, type PlantStore, PlantStoreProblem } from "../client/plant-store.ts";
import type { Row } from "./plant-file.ts";
import { describeErrors } from "./service-client.ts";

export interface ImportOptions {
  /** A row without an id is recognized by this name, its place in the file and its content. */
  readonly batch: string;
  /** Whether the first refused row ends the import. */
  readonly isStopping: boolean;
  readonly concurrency: number;
}

export type ValidRow = Extract<Row, { draft: unknown }>;
export type RefusedRow = Extract<Row, { error: unknown }>;

/** Problems with a single row. Any other would affect every row, and ends the import. */
const rowCodes: readonly string[] = [
  "invalid-request",
  "conflict",
  "too-large",
  "idempotency-mismatch",
];

const idMin = -(2n ** 63n);

export class Importer {
  stored = 0;
  /** Stored unchanged by an earlier run. */
  alreadyThere = 0;
  readonly refused: RefusedRow[];
  readonly #store: PlantStore;
  readonly #options: ImportOptions;
  readonly #cancelling = new AbortController();

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
    return this.isCancelled || (this.#options.isStopping && this.refused.length > 0);
  }

  /** Abandons the requests in flight, too. */
  cancel(): void {
    this.#cancelling.abort();
  }

  /** Throws the first problem that isn't about a single row. */
  async send(rows: Iterator<ValidRow>): Promise<void> {
    const work = async () => {
      while (!this.isStopped) {
        const { value: row, done } = rows.next();
        if (done) return;
        const error = await this.#sendRow(row);
        if (error !== undefined) this.refused.push({ line: row.line, column: row.column, error });
      }
    };
    let failure: unknown;
    const fail = (error: unknown) => {
      // Whatever follows a cancellation is a consequence of it.
      if (!this.isCancelled) failure = error;
      this.cancel();
    };
    const workers = Array.from({ length: this.#options.concurrency }, () => work().catch(fail));
    await Promise.all(workers);
    if (failure !== undefined) throw failure;
  }

  /** Resolves to why the row was refused, if it was. */
  async #sendRow(row: ValidRow): Promise<string | undefined> {
    const { draft } = row;
    const { signal } = this.#cancelling;
    const idempotencyKey = draft.id === undefined ? this.#keyOf(row) : undefined;
    try {
      const { replayed } = await this.#store.create(draft, { signal, idempotencyKey });
      // With a random key, only a retry of this very request can be replayed.
      if (replayed && idempotencyKey !== undefined) this.alreadyThere++;
      else this.stored++;
      return undefined;
    } catch (error) {
      if (!(error instanceof PlantStoreProblem) || !rowCodes.includes(error.code)) throw error;
      if (error.code !== "conflict" || draft.id === undefined) return describeErrors(error);
      if (!(await this.#isThere(draft, BigInt(draft.id)))) {
        return `another plant has the id ${draft.id}`;
      }
      this.alreadyThere++;
      return undefined;
    }
  }

  #keyOf({ line, column, draft }: ValidRow): string {
    const place = column === undefined ? line : `${line}:${column}`;
    const known = JSON.stringify([this.#options.batch, place, draft.name, draft.tag ?? ""]);
    return `import-${new Bun.CryptoHasher("sha256").update(known).digest("hex")}`;
  }

  async #isThere({ name, tag = "" }: PlantDraft, id: bigint): Promise<boolean> {
    const after = id === idMin ? undefined : id - 1n;
    const { signal } = this.#cancelling;
    for await (const plant of this.#store.list({ after, limit: 1, signal })) {
      return plant.id === id && plant.name === name && plant.tag === tag;
    }
    return false;
  }
}
