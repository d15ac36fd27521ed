/**
 * Whether the storage can be used now. After a commit has failed or taken long, on any thread, each
 * check commits a write of its own until one succeeds: there may be no clients' writes to show that
 * commits work again.
 *
 * If a check fails, the database is lost until one succeeds. The log says so once for each, instead
 * of once for every request.
 */
import { deadline } from "../async/deadline.ts";
import { noGarden } from "../async/fair-queue.ts";
import { shareAsync } from "../async/share.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { Write } from "../domain/storage.ts";
import type { Log } from "../log.ts";
import { maskAddress } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";

/** Below the timeouts of usual health checks. */
const checkMs = 2_000;

/** A real commit that leaves no plant, in a garden that no caller has. */
const trial = { garden: noGarden, user: "", atMs: 0, id: 0n } as const;
const trialWrites: readonly Write[] = [
  { kind: "create", ...trial, name: "Trial", tag: "", idempotency: undefined },
  { kind: "delete", ...trial },
];

/** Every operation ends sooner than this: one that fails now may have started this long ago. */
const operationMs = 10_000;

/**
 * What all threads know: whether commits are failing, how many threads have lost the database, when
 * the first of them lost it, and when the last one found it again.
 */
export type ReadinessMemory = SharedArrayBuffer;

const [areCommitsFailing, lostThreads, lostAtMs, backAtMs] = [0, 1, 2, 3];

export function createReadinessMemory(): ReadinessMemory {
  return new SharedArrayBuffer(4 * BigInt64Array.BYTES_PER_ELEMENT);
}

export class Readiness {
  readonly #storage: Pick<Storage, "apply" | "ping">;
  readonly #writer: { readonly isStuck: boolean };
  readonly #state: BigInt64Array;
  readonly #log: Log;
  /** Of the database, for the log. */
  readonly #address: string;
  /** Each thread has its own connections, so it may find the database again later than others. */
  #isLost = false;
  readonly #shareCheck = shareAsync(() => this.#check());

  constructor(
    storage: Pick<Storage, "apply" | "ping">,
    writer: { readonly isStuck: boolean },
    memory: ReadinessMemory,
    log: Log,
    address: string,
  ) {
    this.#storage = storage;
    this.#writer = writer;
    this.#state = new BigInt64Array(memory);
    this.#log = log;
    this.#address = address;
  }

  noteCommit(): void {
    if (this.#state[areCommitsFailing] !== 0n) this.#state[areCommitsFailing] = 0n;
  }

  noteSlowCommit(): void {
    this.#state[areCommitsFailing] = 1n;
  }

  /** A full disk is no such failure: the storage responds, and reads go on. */
  noteFailure(error: unknown): void {
    if (isUnavailable(error)) this.#state[areCommitsFailing] = 1n;
  }

  /** Calls `logIt` to log a failure, unless it happened because the database is lost. */
  async logUnlessLost(error: unknown, logIt: () => void): Promise<void> {
    if (!isUnavailable(error)) return logIt();
    if (this.#isLost) return;
    const failure = await this.check().catch((reason) => reason);
    const isBackLongAgo = Date.now() - Number(this.#state[backAtMs]) > operationMs;
    if (failure !== undefined) this.#noteLoss(error, failure);
    else if (this.#state[lostThreads] === 0n && isBackLongAgo) logIt();
  }

  /** Called regularly: finds out that the database is back even if nobody uses it. */
  async watch(): Promise<void> {
    if (this.#isLost) await this.check().catch(() => {});
  }

  /**
   * Fails with `unavailable`. Calls share one check: anyone may call /readyz, and while the storage
   * hangs, further checks would only queue up.
   */
  check(): Promise<void> {
    return deadline(this.#shareCheck(), checkMs, () => {
      throw new PlantStoreError("unavailable", "The storage does not respond in time.");
    });
  }

  async #check(): Promise<void> {
    if (this.#writer.isStuck) throw new PlantStoreError("unavailable", "The storage is stuck.");
    await this.#storage.ping();
    if (this.#state[areCommitsFailing] !== 0n) {
      await this.#storage.apply(trialWrites).catch((error) => {
        if (!(error instanceof PlantStoreError) || error.code !== "storage-full") throw error;
      });
      this.noteCommit();
    }
    this.#noteReturn();
  }

  /** The first thread to lose it logs that, and the last one to find it again. */
  #noteLoss(...failures: readonly unknown[]): void {
    if (this.#isLost) return;
    this.#isLost = true;
    if (Atomics.add(this.#state, lostThreads, 1n) > 0n) return;
    this.#state[lostAtMs] = BigInt(Date.now());
    const roots = failures.map(findRoot);
    const { message, code } = roots.find((root) => root.code !== undefined) ?? roots[0] ?? {};
    const reason = code === undefined || message?.includes(code) ? message : `${message} (${code})`;
    this.#log.event("error", "database lost", { database: maskAddress(this.#address), reason });
  }

  #noteReturn(): void {
    if (!this.#isLost) return;
    this.#isLost = false;
    this.#state[backAtMs] = BigInt(Date.now());
    if (Atomics.sub(this.#state, lostThreads, 1n) > 1n) return;
    const lostSeconds = (Date.now() - Number(this.#state[lostAtMs])) / 1_000;
    const database = maskAddress(this.#address);
    this.#log.event("info", "database back", { database, lostSeconds });
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof PlantStoreError && error.code === "unavailable";
}

interface Root {
  readonly message?: string | undefined;
  /** Of the system or the database, such as ECONNREFUSED. */
  readonly code?: string | undefined;
}

/** What an error comes down to: the innermost message and code among its causes. */
function findRoot(error: unknown): Root {
  const { message, code, cause } = (error ?? {}) as Root & { cause?: unknown };
  const inner = error instanceof AggregateError ? error.errors.at(-1) : cause;
  const root = inner === undefined ? {} : findRoot(inner);
  const own = error instanceof PlantStoreError ? undefined : code;
  return { message: root.message || message, code: root.code ?? own };
}
