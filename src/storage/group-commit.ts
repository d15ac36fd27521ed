/**
 * Gathers writes that wait at the same time into one durable commit and answers each after it. It
 * knows no engine: a commit is whatever `apply` does.
 */
import { overloaded, PlantStoreError } from "../domain/errors.ts";
import type { Outcome, PlantStorage, PlantWriter, Write } from "../domain/storage.ts";

export interface GroupCommitOptions {
  readonly groupWritesMax: number;
  /**
   * Writes beyond this many waiting are refused at once: better than an answer that comes too late.
   */
  readonly waitingWritesMax: number;
  /**
   * So are those for which the groups before them would take this long, at the pace of the last
   * one.
   */
  readonly patienceMs: number;
  /** How long a write may wait for its commit to start, and how long that commit may take. */
  readonly deadlineMs: number;
  readonly onCommit: (writes: number, durationMs: number) => void;
}

export const groupCommitDefaults = {
  groupWritesMax: 1024,
  waitingWritesMax: 16_384,
  patienceMs: 500,
  deadlineMs: 10_000,
} as const;

const firstAnswers = 32;

/**
 * Turns of the event loop between two commits, in which those who were just answered come back.
 * Else half of them would always wait for the other half: groups of 16 of 32 busy connections
 * became 26, and PostgreSQL's work for a create a third less.
 */
const gatheringTurns = 4;

interface Waiter {
  readonly write: Write;
  readonly sinceMs: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

export class GroupCommit implements PlantWriter {
  readonly #storage: Pick<PlantStorage, "apply">;
  readonly #options: GroupCommitOptions;
  #waiting: Waiter[] = [];
  #isBusy = false;
  #isStuck = false;
  /** When the commit under way began, or the waiting for it; and how long the last one took. */
  #startedAtMs = 0;
  #lastMs = 0;
  /** How many groups are committed but not answered to the end. */
  #answering = 0;
  #onIdle: (() => void)[] = [];

  constructor(storage: Pick<PlantStorage, "apply">, options: GroupCommitOptions) {
    this.#storage = storage;
    this.#options = options;
  }

  /** Whether the running commit has overstayed its deadline. */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  /**
   * Whether a write that came in now is refused. What fits into one group is not: it goes with the
   * next commit, however long that takes to begin.
   */
  get isFull(): boolean {
    const { groupWritesMax, waitingWritesMax, patienceMs } = this.#options;
    const waiting = this.#waiting.length;
    if (this.#isStuck || waiting >= waitingWritesMax) return true;
    if (waiting < groupWritesMax) return false;
    const commitMs = Math.max(this.#lastMs, performance.now() - this.#startedAtMs);
    return Math.floor(waiting / groupWritesMax) * commitMs > patienceMs;
  }

  write(write: Write): Promise<Outcome> {
    if (this.isFull) return Promise.reject(overloaded);
    const sinceMs = performance.now();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, sinceMs, resolve, reject });
      if (this.#isBusy) return;
      this.#isBusy = true;
      this.#startedAtMs = sinceMs;
      // At the end of this turn of the event loop, so that all requests that it brought share it.
      setImmediate(() => this.#commitAll());
    });
  }

  /** Resolves once no write is waiting or under way. */
  async drain(): Promise<void> {
    if (!this.#isBusy && this.#answering === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle.push(resolve);
    });
  }

  async #commitAll(): Promise<void> {
    for (let group = this.#takeGroup(); group.length > 0; group = this.#takeGroup()) {
      this.#startedAtMs = performance.now();
      const deadline = setTimeout(() => this.#giveUp(group), this.#options.deadlineMs);
      await this.#commit(group);
      clearTimeout(deadline);
      this.#isStuck = false;
      if (group.length > 1) await this.#gather();
      this.#lastMs = performance.now() - this.#startedAtMs;
    }
    this.#isBusy = false;
    this.#noteIdle();
  }

  /** Unless the next group is full already. */
  async #gather(): Promise<void> {
    const { groupWritesMax } = this.#options;
    for (let turn = 0; turn < gatheringTurns && this.#waiting.length < groupWritesMax; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Empty when nothing waits. */
  #takeGroup(): Waiter[] {
    this.#refuseLate();
    if (this.#waiting.length > this.#options.groupWritesMax) {
      return this.#waiting.splice(0, this.#options.groupWritesMax);
    }
    const group = this.#waiting;
    this.#waiting = [];
    return group;
  }

  /** Whoever waited longer than a commit may take does so no more: the queue is too long. */
  #refuseLate(): void {
    const oldestMs = performance.now() - this.#options.deadlineMs;
    while ((this.#waiting[0]?.sinceMs ?? Number.POSITIVE_INFINITY) < oldestMs) {
      this.#waiting.shift()?.reject(overloaded);
    }
  }

  async #commit(group: readonly Waiter[]): Promise<void> {
    const startedAtMs = performance.now();
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#storage.apply(group.map((waiter) => waiter.write));
    } catch (error) {
      if (group.length > 1 && !(error instanceof PlantStoreError)) {
        // Not the storage failed but one of the writes: alone, only the guilty one does.
        for (const waiter of group) await this.#commit([waiter]);
        return;
      }
      for (const waiter of group) waiter.reject(error);
      return;
    }
    this.#options.onCommit(group.length, performance.now() - startedAtMs);
    this.#answer(group, outcomes);
  }

  /**
   * A few at first, then twice as many in each turn of the event loop, so that other requests get
   * in between: 256 answers in one go held lists up for 10 ms. The next commit does not wait for
   * it.
   */
  #answer(
    group: readonly Waiter[],
    outcomes: readonly Outcome[],
    from = 0,
    to = firstAnswers,
  ): void {
    const end = Math.min(to, group.length);
    for (let index = from; index < end; index++) {
      group[index]?.resolve(outcomes[index] as Outcome);
    }
    if (end === group.length) return;
    this.#answering++;
    setImmediate(() => {
      this.#answering--;
      this.#answer(group, outcomes, end, end * 2);
      this.#noteIdle();
    });
  }

  #noteIdle(): void {
    if (this.#isBusy || this.#answering > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** A commit that does not come back also holds up all that wait behind it. */
  #giveUp(group: readonly Waiter[]): void {
    this.#isStuck = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    const message =
      "The storage did not answer in time, so the outcome is unknown. " +
      "Retry with the same Idempotency-Key.";
    for (const waiter of group) waiter.reject(new PlantStoreError("unavailable", message));
    for (const waiter of waiting) waiter.reject(overloaded);
  }
}
