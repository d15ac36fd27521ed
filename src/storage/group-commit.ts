/**
 * Gathers writes that wait at the same time into one durable commit and resolves each after it. It
 * knows no engine: a commit is whatever `apply` does. `http/admission.ts` bounds how many wait.
 */
import { overloaded, PlantStoreError, sendAgain } from "../domain/errors.ts";
import {
  GardenLocked,
  type Outcome,
  type PlantStorage,
  type PlantWriter,
  type Write,
} from "../domain/storage.ts";

export interface GroupCommitOptions {
  readonly groupWritesMax: number;
  /** A commit that takes longer is reported to `onSlow` while it goes on. */
  readonly slowMs: number;
  /** How long a commit may take. After that its outcome is unknown. */
  readonly deadlineMs: number;
  /** A group is about to be committed; its first write has waited for that long. */
  readonly onStart: (waitedMs: number) => void;
  readonly onCommit: (outcomes: readonly Outcome[], durationMs: number) => void;
  readonly onFailure: (error: PlantStoreError) => void;
  readonly onSlow: () => void;
}

export const groupCommitDefaults = {
  groupWritesMax: 1024,
  slowMs: 3_000,
  deadlineMs: 10_000,
  onStart() {},
  onCommit() {},
  onFailure() {},
  onSlow() {},
} as const;

const firstResolved = 32;

/**
 * Ticks between two commits, in which clients that just got a response send their next write.
 * Otherwise half of them always wait for the other half: with 32 busy connections, groups of 16
 * became 26, and PostgreSQL's work for a create a third less.
 */
const gatheringTicks = 4;

/** How many gardens can have a queue of their own. Each may hold a connection while it waits. */
const lockedGardensMax = 4;

interface Waiter {
  readonly garden: string;
  readonly writes: readonly Write[];
  /** Takes the outcomes of the whole group, and where its own begin. */
  readonly resolve: (outcomes: readonly Outcome[], from: number) => void;
  readonly reject: (error: unknown) => void;
}

type Group = readonly Waiter[];

export class GroupCommit implements PlantWriter {
  readonly #storage: Pick<PlantStorage, "apply">;
  readonly #options: GroupCommitOptions;
  /** The writes of all gardens that aren't locked. */
  readonly #shared: CommitQueue;
  /** Gardens that another program has locked: only their own writes wait for that. */
  readonly #locked = new Map<string, CommitQueue>();
  /** Groups that are durable, but whose waiters are not all resolved yet. */
  #resolving = 0;

  constructor(storage: Pick<PlantStorage, "apply">, options: GroupCommitOptions) {
    this.#storage = storage;
    this.#options = options;
    this.#shared = new CommitQueue(options, (group) => this.#commit(group));
  }

  /** Whether the commit under way is past its deadline. */
  get isStuck(): boolean {
    return this.#shared.isStuck;
  }

  /** Fails with `overloaded` while a commit is stuck: there is no telling when it ends. */
  write(write: Write): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        garden: write.garden,
        writes: [write],
        resolve: (outcomes, from) => resolve(outcomes[from] as Outcome),
        reject,
      });
    });
  }

  writeAll(writes: readonly Write[]): Promise<readonly Outcome[]> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        garden: writes[0]?.garden ?? "",
        writes,
        resolve: (outcomes, from) => resolve(outcomes.slice(from, from + writes.length)),
        reject,
      });
    });
  }

  /** Resolves once no write is waiting or under way. */
  async drain(): Promise<void> {
    while (this.#shared.isBusy || this.#locked.size > 0 || this.#resolving > 0) await Bun.sleep(1);
  }

  #enqueue(waiter: Waiter): void {
    const queue = this.#locked.get(waiter.garden) ?? this.#shared;
    queue.add([waiter]);
  }

  /** If a garden is locked, the group is split until only that garden's writes are left. */
  async #commit(group: Group, isApart = false): Promise<void> {
    const error = await this.#apply(group, isApart);
    if (error === undefined) return;
    const parts = Map.groupBy(group, ({ garden }) => garden);
    if (error instanceof PlantStoreError || (isApart && group.length === 1)) {
      reject(group, error);
    } else if (isApart || !(error instanceof GardenLocked)) {
      // One of the writes is at fault, not the storage: tried alone, only that one fails.
      for (const waiter of group) await this.#commit([waiter], true);
    } else if (parts.size > 1) {
      for (const part of parts.values()) await this.#commit(part);
    } else {
      for (const [garden, part] of parts) this.#waitForLock(garden, part);
    }
  }

  /** The garden has its own queue until that is empty; later writes join it. */
  #waitForLock(garden: string, group: Group): void {
    if (this.#locked.size >= lockedGardensMax) {
      reject(group, overloaded);
      return;
    }
    const queue = new CommitQueue(
      this.#options,
      (part) => this.#commit(part, true),
      () => this.#locked.delete(garden),
    );
    this.#locked.set(garden, queue);
    queue.add([...group, ...this.#shared.take(garden)]);
  }

  /** Returns the error instead of throwing it. */
  async #apply(group: Group, isApart: boolean): Promise<unknown> {
    const startedAtMs = performance.now();
    const writes: Write[] = [];
    const starts: number[] = [];
    for (const waiter of group) {
      starts.push(writes.length);
      for (const write of waiter.writes) writes.push(write);
    }
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#storage.apply(writes, { isApart });
    } catch (error) {
      if (error instanceof PlantStoreError) this.#options.onFailure(error);
      return error ?? new Error("The storage failed without a reason.");
    }
    this.#options.onCommit(outcomes, performance.now() - startedAtMs);
    const settle = (index: number) => group[index]?.resolve(outcomes, starts[index] as number);
    this.#resolve(group.length, settle);
    return undefined;
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
    });
  }
}

function reject(group: Group, error: unknown): void {
  for (const waiter of group) waiter.reject(error);
}

/** Writes that wait while a group is committed, and then are the next group. */
class CommitQueue {
  readonly #options: GroupCommitOptions;
  /** Settles every waiter of the group. */
  readonly #commit: (group: Group) => Promise<void>;
  readonly #onIdle: () => unknown;
  #waiting: Waiter[] = [];
  /** When the oldest waiting write was queued. */
  #waitingSinceMs = 0;
  isBusy = false;
  isStuck = false;

  constructor(
    options: GroupCommitOptions,
    commit: (group: Group) => Promise<void>,
    onIdle: () => unknown = () => {},
  ) {
    this.#options = options;
    this.#commit = commit;
    this.#onIdle = onIdle;
  }

  add(waiters: Group): void {
    if (this.isStuck) {
      reject(waiters, overloaded);
      return;
    }
    if (this.#waiting.length === 0) this.#waitingSinceMs = performance.now();
    this.#waiting.push(...waiters);
    if (this.isBusy) return;
    this.isBusy = true;
    // At the end of this tick, so that all requests that it brings share the commit.
    setImmediate(() => this.#commitAll());
  }

  /** Removes the waiting writes of a garden and returns them. */
  take(garden: string): Group {
    const taken = this.#waiting.filter((waiter) => waiter.garden === garden);
    this.#waiting = this.#waiting.filter((waiter) => waiter.garden !== garden);
    return taken;
  }

  async #commitAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const { slowMs, deadlineMs, onStart, onSlow } = this.#options;
      onStart(performance.now() - this.#waitingSinceMs);
      const group = this.#takeGroup();
      let timer = setTimeout(() => {
        onSlow();
        timer = setTimeout(() => this.#giveUp(group), deadlineMs - slowMs);
      }, slowMs);
      await this.#commit(group);
      clearTimeout(timer);
      this.isStuck = false;
      if (group.length > 1) await this.#gather();
    }
    this.isBusy = false;
    this.#onIdle();
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

  /** A commit that does not end also holds up all that wait after it. */
  #giveUp(group: Group): void {
    this.isStuck = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    const message = `The storage did not respond in time, so the outcome is unknown. ${sendAgain}`;
    reject(group, new PlantStoreError("unavailable", message));
    reject(waiting, overloaded);
  }
}
