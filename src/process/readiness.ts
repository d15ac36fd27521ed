/**
 * Whether this thread can use the storage now. After one of its commits has failed or taken long,
 * each check commits a write of its own until one succeeds: there may be no clients' writes to show
 * that commits work again.
 *
 * If a check fails, the database is lost until one succeeds. The log says so once for each, instead
 * of once for every request.
 */
import * as v from "valibot";
import { PlantStoreError } from "../domain/errors.ts";
import { plantDraftSchema } from "../domain/plant.ts";
import type { Write } from "../domain/ports.ts";
import type { Log } from "../shared/log.ts";
import { deadline, singleFlight } from "../shared/promises.ts";
import { maskAddress } from "../storage/open.ts";
import { type Storage, trialGarden } from "../storage/storage.ts";

/** Below the timeouts of usual health checks. */
const checkMs = 2_000;

/** A real commit that leaves no plant, in a garden that no caller has. */
const base = { garden: trialGarden, user: "", atMs: 0, id: 0n } as const;
const content = v.parse(plantDraftSchema, { name: "Trial" });
const trialWrites: readonly Write[] = [
  { kind: "create", ...content, ...base, key: undefined },
  { kind: "delete", ...base },
];

export class Readiness {
  #areCommitsFailing = false;
  /** Whether a commit is past its deadline. */
  #isStuck = false;
  /** Absent unless the database is lost. */
  #lostAtMs: number | undefined;
  readonly #sharedCheck = singleFlight(() => this.#check());

  constructor(
    private readonly storage: Pick<Storage, "apply" | "ping">,
    private readonly log: Log,
    /** Of the database, for the log. */
    private readonly address: string,
  ) {}

  noteCommit(): void {
    this.#areCommitsFailing = false;
  }

  noteSlowCommit(): void {
    this.#areCommitsFailing = true;
  }

  noteStuckCommit(isStuck: boolean): void {
    this.#isStuck = isStuck;
  }

  /** A full disk is no such failure: the storage responds, and reads go on. */
  noteFailure(error: unknown): void {
    if (isUnavailable(error)) this.#areCommitsFailing = true;
  }

  /** Calls `logIt` to log a failure, unless it happened because the database is lost. */
  async logUnlessLost(error: unknown, logIt: () => void): Promise<void> {
    if (!isUnavailable(error)) return logIt();
    if (this.#lostAtMs !== undefined) return;
    const failure = await this.check().catch((reason) => reason);
    if (failure !== undefined) this.#noteLoss(failure);
    else logIt();
  }

  /** Called regularly: finds out that the database is back even if nobody uses it. */
  async watch(): Promise<void> {
    if (this.#lostAtMs !== undefined) await this.check().catch(() => {});
  }

  /**
   * Fails with `unavailable`. Calls share one check: anyone may call /readyz, and while the storage
   * hangs, further checks would only queue up.
   */
  check(): Promise<void> {
    return deadline(this.#sharedCheck(), checkMs, () => {
      throw new PlantStoreError("unavailable", "The storage does not respond in time.");
    });
  }

  isReady(): Promise<boolean> {
    return this.check().then(
      () => true,
      () => false,
    );
  }

  async #check(): Promise<void> {
    if (this.#isStuck) throw new PlantStoreError("unavailable", "The storage is stuck.");
    await this.storage.ping();
    if (this.#areCommitsFailing) {
      await this.storage.apply(trialWrites).catch((error) => {
        if (error instanceof PlantStoreError && error.code === "storage-full") return;
        throw error;
      });
      this.noteCommit();
    }
    this.#noteReturn();
  }

  #noteLoss(failure: unknown): void {
    if (this.#lostAtMs !== undefined) return;
    this.#lostAtMs = performance.now();
    const { message, code = "" } = findRoot(failure);
    const reason = message?.includes(code) ? message : `${message} (${code})`;
    this.log.event("error", "database lost", { database: maskAddress(this.address), reason });
  }

  #noteReturn(): void {
    if (this.#lostAtMs === undefined) return;
    const lostSeconds = (performance.now() - this.#lostAtMs) / 1_000;
    this.#lostAtMs = undefined;
    const database = maskAddress(this.address);
    this.log.event("info", "database back", { database, lostSeconds });
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

/** The innermost message and code among an error's causes. A cause may be text, or only a code. */
function findRoot(error: unknown): Root {
  const { message, code, cause } = Object(error) as Root & { cause?: unknown };
  const inner = error instanceof AggregateError ? error.errors.at(-1) : cause;
  const root = inner === undefined ? {} : findRoot(inner);
  const own = error instanceof PlantStoreError ? undefined : code;
  return { message: root.message || message, code: root.code ?? own };
}
