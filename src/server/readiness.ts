/**
 * Whether the storage can be used now. A commit that fails, or takes long, puts writes in doubt for
 * all threads. While in doubt, each check commits a write itself: no client may come to do it.
 */
import { PlantStoreError } from "../domain/errors.ts";
import type { Write } from "../domain/storage.ts";
import type { Storage } from "../storage/storage.ts";

/** Below the timeouts of usual health checks. */
const checkMs = 2_000;

/** A real commit that leaves no plant. No caller can have a garden without a name. */
const trialWrites: readonly Write[] = [
  { kind: "create", garden: "", id: 0n, name: "Trial", tag: "", idempotency: undefined },
  { kind: "delete", garden: "", id: 0n },
];

/** Tells all threads whether writes are in doubt. */
export type DoubtMemory = SharedArrayBuffer;

export function createDoubtMemory(): DoubtMemory {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
}

export class Readiness {
  readonly #storage: Pick<Storage, "apply" | "ping">;
  readonly #writer: { readonly isStuck: boolean };
  readonly #doubt: Int32Array;
  #checking: Promise<void> | undefined;

  constructor(
    storage: Pick<Storage, "apply" | "ping">,
    writer: { readonly isStuck: boolean },
    memory: DoubtMemory,
  ) {
    this.#storage = storage;
    this.#writer = writer;
    this.#doubt = new Int32Array(memory);
  }

  noteCommit(): void {
    if (this.#doubt[0] !== 0) this.#doubt[0] = 0;
  }

  noteSlowCommit(): void {
    this.#doubt[0] = 1;
  }

  /** A full disk is no reason for doubt: the storage responds, and reads go on. */
  noteFailure(error: unknown): void {
    if (error instanceof PlantStoreError && error.code === "unavailable") this.#doubt[0] = 1;
  }

  /**
   * Fails with `unavailable`. Calls share one check: anyone may call /readyz, and while the storage
   * hangs, further checks would only queue up.
   */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return inTime(this.#checking);
  }

  async #check(): Promise<void> {
    if (this.#writer.isStuck) throw new PlantStoreError("unavailable", "The storage is stuck.");
    await this.#storage.ping();
    if (this.#doubt[0] === 0) return;
    await this.#storage.apply(trialWrites).catch((error) => {
      if (!(error instanceof PlantStoreError) || error.code !== "storage-full") throw error;
    });
    this.noteCommit();
  }
}

async function inTime(work: Promise<void>): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new PlantStoreError("unavailable", "The storage does not respond in time.");
    timer = setTimeout(() => reject(error), checkMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
