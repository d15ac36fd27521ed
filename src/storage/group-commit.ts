/**
 * Gathers writes that wait at the same time into one durable commit and resolves each after it. It
 * knows no engine: a commit is whatever `apply` does. `http/admission.ts` bounds how many wait.
 */
import { overloaded, PlantStoreError } from "../domain/errors.ts";
import type { Outcome, PlantStorage, PlantWriter, Write } from "../domain/storage.ts";

export interface GroupCommitOptions {
  readonly groupWritesMax: number;
  /** How long a commit may take. After that its outcome is unknown. */
  readonly deadlineMs: number;
  readonly onCommit: (writes: number, durationMs: number) => void;
}

export const groupCommitDefaults = {
  groupWritesMax: 1024,
  deadlineMs: 10_000,
} as const;

const firstResolved = 32;

/**
 * Ticks between two commits, in which clients that just got a response send their next write.
 * Otherwise half of them always wait for the other half: with 32 busy connections, groups of 16
 * became 26, and PostgreSQL's work for a create a third less.
 */
const gatheringTicks = 4;

interface Waiter {
  readonly writes: readonly Write[];
  /** Takes the outcomes of the whole group, and where its own begin. */
  readonly resolve: (outcomes: readonly Outcome[], from: number) => void;
  readonly reject: (error: unknown) => void;
}

export class GroupCommit implements PlantWriter {
  readonly #storage: Pick<PlantStorage, "apply">;
  readonly #options: GroupCommitOptions;
  #waiting: Waiter[] = [];
  #isBusy = false;
  #isStuck = false;
  /** How many groups are committed but not resolved to the end. */
  #resolving = 0;
  #onIdle: (() => void)[] = [];

  constructor(storage: Pick<PlantStorage, "apply">, options: GroupCommitOptions) {
    this.#storage = storage;
    this.#options = options;
  }

  /** Whether the commit under way is past its deadline. */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  /** Fails with `overloaded` while a commit is stuck: there is no telling when it ends. */
  write(write: Write): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        writes: [write],
        resolve: (outcomes, from) => resolve(outcomes[from] as Outcome),
        reject,
      });
    });
  }

  writeAll(writes: readonly Write[]): Promise<readonly Outcome[]> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        writes,
        resolve: (outcomes, from) => resolve(outcomes.slice(from, from + writes.length)),
        reject,
      });
    });
  }

  #enqueue(waiter: Waiter): void {
    if (this.#isStuck) {
      waiter.reject(overloaded);
      return;
    }
    this.#waiting.push(waiter);
    if (this.#isBusy) return;
    this.#isBusy = true;
    // At the end of this tick, so that all requests that it brings share the commit.
    setImmediate(() => this.#commitAll());
  }

  /** Resolves once no write is waiting or under way. */
  async drain(): Promise<void> {
    if (!this.#isBusy && this.#resolving === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle.push(resolve);
    });
  }

  async #commitAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup();
      const deadline = setTimeout(() => this.#giveUp(group), this.#options.deadlineMs);
      await this.#commit(group);
      clearTimeout(deadline);
      this.#isStuck = false;
      if (group.length > 1) await this.#gather();
    }
    this.#isBusy = false;
    this.#noteIdle();
  }

  #takeGroup(): Waiter[] {
    let writes = 0;
    const end = this.#waiting.findIndex((waiter, index) => {
      writes += waiter.writes.length;
      return index > 0 && writes > this.#options.groupWritesMax;
    });
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : end);
  }

  /** Unless the next group is full already. */
  async #gather(): Promise<void> {
    const { groupWritesMax } = this.#options;
    for (let tick = 0; tick < gatheringTicks && this.#waiting.length < groupWritesMax; tick++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #commit(group: readonly Waiter[]): Promise<void> {
    const startedAtMs = performance.now();
    const writes: Write[] = [];
    const starts: number[] = [];
    for (const waiter of group) {
      starts.push(writes.length);
      for (const write of waiter.writes) writes.push(write);
    }
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#storage.apply(writes);
    } catch (error) {
      if (group.length > 1 && !(error instanceof PlantStoreError)) {
        // One of the writes is at fault, not the storage: tried alone, only that one fails.
        for (const waiter of group) await this.#commit([waiter]);
        return;
      }
      for (const waiter of group) waiter.reject(error);
      return;
    }
    this.#options.onCommit(outcomes.length, performance.now() - startedAtMs);
    const settle = (index: number) => group[index]?.resolve(outcomes, starts[index] as number);
    this.#resolve(group.length, settle);
  }

  /**
   * A few at first, then twice as many in each tick, so that other requests get in between: 256
   * in one go delayed lists by 10 ms. The next commit does not wait for it.
   */
  #resolve(count: number, settle: (index: number) => void, from = 0, to = firstResolved): void {
    for (let index = from; index < Math.min(to, count); index++) settle(index);
    if (to >= count) return;
    this.#resolving++;
    setImmediate(() => {
      this.#resolving--;
      this.#resolve(count, settle, to, to * 2);
      this.#noteIdle();
    });
  }

  #noteIdle(): void {
    if (this.#isBusy || this.#resolving > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** A commit that does not end also holds up all that wait after it. */
  #giveUp(group: readonly Waiter[]): void {
    this.#isStuck = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    const message =
      "The storage did not respond in time, so the outcome is unknown. " +
      "Retry with the same Idempotency-Key.";
    for (const waiter of group) waiter.reject(new PlantStoreError("unavailable", message));
    for (const waiter of waiting) waiter.reject(overloaded);
  }
}
