/** Sends lines of plants to a service, many at a time, so that no line makes a second plant. */
import { type PlantDraft, type PlantStore, PlantStoreProblem } from "../client/plant-store.ts";
import type { PlantLine } from "./plant-file.ts";
import { renderFaults } from "./service-client.ts";

export interface Tally {
  stored: number;
  /** Stored by an earlier run, and the same. */
  alreadyThere: number;
  refused: number;
}

export interface ImportWish {
  /** Lines without an id are known by this, their number and what they hold. */
  readonly batch: string;
  /** Whether a bad line ends it. */
  readonly isStopping: boolean;
  readonly concurrency: number;
}

/** Faults of a line. All other problems would meet every line, and end the import. */
const lineCodes: readonly string[] = [
  "invalid-request",
  "conflict",
  "too-large",
  "idempotency-mismatch",
];

const idMin = -(2n ** 63n);

export class Importer {
  readonly tally: Tally = { stored: 0, alreadyThere: 0, refused: 0 };
  readonly #store: PlantStore;
  readonly #wish: ImportWish;
  readonly #ending = new AbortController();
  #closeLines = () => {};
  #isStopped = false;
  isInterrupted = false;

  constructor(store: PlantStore, wish: ImportWish) {
    this.#store = store;
    this.#wish = wish;
  }

  /** What is under way is given up. */
  stop(): void {
    this.isInterrupted = true;
    this.#ending.abort();
    this.#takeNoMore();
  }

  /**
   * Fails with the first problem that is not the fault of a line. `close` ends the lines, also
   * while none comes.
   */
  async run(
    lines: AsyncGenerator<PlantLine, void, undefined>,
    refuse: (line: number, fault: string) => void,
    close: () => void,
  ): Promise<void> {
    this.#closeLines = close;
    const failures: unknown[] = [];
    const work = async () => {
      while (!this.#isStopped) {
        const { value: line, done } = await lines.next();
        if (done || this.#isStopped) return;
        const fault = "fault" in line ? line.fault : await this.#send(line.line, line.draft);
        if (fault === undefined) continue;
        this.tally.refused++;
        refuse(line.line, fault);
        if (this.#wish.isStopping) this.#takeNoMore();
      }
    };
    const fail = (error: unknown) => {
      // What others meet because of the first failure is no failure of its own.
      if (!this.#ending.signal.aborted) failures.push(error);
      this.#ending.abort();
      this.#takeNoMore();
    };
    const workers = Array.from({ length: this.#wish.concurrency }, () => work().catch(fail));
    await Promise.all(workers);
    if (failures.length > 0) throw failures[0];
  }

  #takeNoMore(): void {
    this.#isStopped = true;
    this.#closeLines();
  }

  /** Resolves to what is wrong with the line, if anything. */
  async #send(line: number, draft: PlantDraft): Promise<string | undefined> {
    const { signal } = this.#ending;
    try {
      if (draft.id !== undefined) await this.#store.create(draft, { signal });
      else {
        const idempotencyKey = this.#keyOf(line, draft);
        const { replayed } = await this.#store.create(draft, { signal, idempotencyKey });
        if (replayed) {
          this.tally.alreadyThere++;
          return undefined;
        }
      }
      this.tally.stored++;
      return undefined;
    } catch (error) {
      if (!(error instanceof PlantStoreProblem) || !lineCodes.includes(error.code)) throw error;
      if (error.code !== "conflict" || draft.id === undefined) return renderFaults(error);
      if (!(await this.#isThere(draft, BigInt(draft.id)))) {
        return `another plant has the id ${draft.id}`;
      }
      this.tally.alreadyThere++;
      return undefined;
    }
  }

  #keyOf(line: number, { name, tag = "" }: PlantDraft): string {
    const known = JSON.stringify([this.#wish.batch, line, name, tag]);
    return `import-${new Bun.CryptoHasher("sha256").update(known).digest("hex")}`;
  }

  async #isThere({ name, tag = "" }: PlantDraft, id: bigint): Promise<boolean> {
    const after = id === idMin ? undefined : id - 1n;
    for await (const plant of this.#store.list({ after, limit: 1, signal: this.#ending.signal })) {
      return plant.id === id && plant.name === name && plant.tag === tag;
    }
    return false;
  }
}
