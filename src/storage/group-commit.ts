/**
 * Gathers writes that wait at the same time into one durable commit and resolves each after it. It
 * knows no engine: a commit is whatever the storage does. Gardens take turns in each group, so one
 * that writes a lot only holds up itself. Writes to gardens that somebody else holds leave the group
 * and wait in held-gardens.ts.
 */

import { PlantStoreError } from "../domain/errors.ts";
import { slicePlantsMax, storedCharacters } from "../domain/plants.ts";
import type { Outcome, PlantStorage, Write, WriteQueue } from "../domain/ports.ts";
import { FairQueue } from "../limits/fair-queue.ts";
import { overloaded } from "../limits/overload.ts";
import { endOfTick, gather } from "../limits/ticks.ts";
import { storageError, unknownOutcome } from "./failures.ts";
import { HeldGardens } from "./held-gardens.ts";
import {
  groupWritesMax,
  type WaitingEntry,
  type WaitingWrites,
  WriteGroup,
} from "./write-group.ts";

/** Counts commits and reports them. */
export interface CommitObserver {
  /** A group is about to be committed; its first write has waited for that long. */
  onStart?(waitedMs: number): void;
  /** Without a duration if it first waited for its garden. */
  onCommit?(outcomes: readonly Outcome[], durationMs: number | undefined): void;
  /** A request or a slice of a bulk is settled whose garden somebody else held. */
  onGardenWait?(waitedMs: number): void;
  /** So many of them are refused: their garden is still held, or too much waits for it. */
  onGardenRefusal?(count: number): void;
  onFailure?(error: PlantStoreError): void;
  /** A commit takes long, and goes on. */
  onSlow?(): void;
  /** A commit is past its deadline; or, in the end, it isn't any more. */
  onStuck?(isStuck: boolean): void;
}

const slowMs = 3_000;
/** How long a commit may take. After that its outcome is unknown. */
export const deadlineMs = 10_000;

/** Resolving more in one tick delayed other requests by 10 ms. */
const settledPerTick = 128;

type Group = readonly WaitingEntry[];

export class GroupCommit implements WriteQueue {
  readonly #waiting: FairQueue<WaitingWrites>;
  readonly #held: HeldGardens;
  #isBusy = false;
  /** Whether the last group had more than one request. */
  #hadCompany = true;
  /** Whether the commit under way is past its deadline. */
  #isStuck = false;
  readonly #settler = new Settler();

  constructor(
    private readonly storage: Pick<PlantStorage, "apply" | "contended">,
    private readonly observer: CommitObserver = {},
    private readonly now: () => number = () => performance.now(),
  ) {
    this.#waiting = new FairQueue(now);
    const commits = {
      commit: (group: Group, untilMs: number) => this.#commitHeld(group, untilMs),
      reject: (group: Group, error: PlantStoreError) => {
        this.observer.onGardenRefusal?.(group.length);
        this.#reject(group, error);
      },
      gather: () => this.#gather(),
    };
    this.#held = new HeldGardens(commits, storage.contended?.waitsMax ?? 0, now);
  }

  /** Fails with `overloaded` while a commit is stuck: there is no telling when it ends. */
  write(write: Write): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        garden: write.garden,
        writes: [write],
        characters: storedCharacters(write),
        isContinued: false,
        resolve: (outcomes, from) => resolve(outcomes[from] as Outcome),
        reject,
      });
    });
  }

  writeAll(writes: readonly Write[], isContinued = false): Promise<readonly Outcome[]> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        garden: writes[0]?.garden ?? "",
        writes,
        characters: writes.reduce((sum, write) => sum + storedCharacters(write), 0),
        isContinued,
        resolve: (outcomes, from) => resolve(outcomes.slice(from, from + writes.length)),
        reject,
      });
    });
  }

  /** Resolves once no write is waiting or under way. */
  async drain(): Promise<void> {
    while (this.#isBusy || !this.#held.isEmpty || !this.#settler.isIdle) await Bun.sleep(1);
  }

  #enqueue(writes: WaitingWrites): void {
    const { garden } = writes;
    if (this.#isStuck) {
      writes.reject(overloaded);
      return;
    }
    if (this.#held.has(garden)) {
      this.#held.add({ item: writes, queuedAtMs: this.now() });
      return;
    }
    this.#waiting.push(garden, writes);
    if (this.#isBusy) return;
    this.#isBusy = true;
    void this.#commitAll();
  }

  async #commitAll(): Promise<void> {
    try {
      // So that all requests that this tick brings share a commit. A lone client needn't wait.
      if (this.#hadCompany) await endOfTick();
      while (this.#waiting.length > 0) await this.#commitNext();
    } finally {
      // Even if the observer throws: otherwise nothing would ever be committed again.
      this.#isBusy = false;
    }
  }

  async #commitNext(): Promise<void> {
    const { entries } = this.#takeGroup();
    this.#hadCompany = entries.length > 1;
    this.observer.onStart?.(this.now() - (entries[0]?.queuedAtMs ?? 0));
    this.#refuseLate(overloaded);
    const stopWatching = watch(
      () => this.observer.onSlow?.(),
      () => this.#giveUp(entries),
    );
    try {
      this.#hold(await this.#commit(entries));
    } finally {
      stopWatching();
      if (this.#isStuck) this.observer.onStuck?.(false);
      this.#isStuck = false;
    }
    if (entries.length > 1) await this.#gather();
  }

  #takeGroup(): WriteGroup {
    // A garden that is alone may fill the group: larger groups are faster.
    const isAlone = this.#waiting.gardens === 1;
    const group = new WriteGroup(isAlone ? groupWritesMax : slicePlantsMax);
    for (let next = this.#waiting.shift(group.fits); next; next = this.#waiting.shift(group.fits)) {
      group.add(next);
    }
    return group;
  }

  /** What has waited too long, unless it continues a bulk: half a bulk is worse than a slow one. */
  #refuseLate(error: PlantStoreError): void {
    this.#reject(
      this.#waiting.removeLate(({ isContinued }) => isContinued),
      error,
    );
  }

  /** From now on, all writes to these gardens wait for them. */
  #hold(entries: Group): void {
    for (const entry of entries) this.#held.add(entry);
    for (const garden of new Set(entries.map(({ item }) => item.garden))) {
      for (const entry of this.#waiting.removeGarden(garden)) this.#held.add(entry);
    }
  }

  async #commitHeld(group: Group, untilMs: number): Promise<Group> {
    const held = await this.#commit(group, untilMs);
    const isHeld = new Set(held);
    for (const entry of group) {
      if (!isHeld.has(entry)) this.observer.onGardenWait?.(this.now() - entry.queuedAtMs);
    }
    return held;
  }

  /**
   * Settles every entry of the group but those whose garden somebody else holds, and returns these.
   * `untilMs` is how long to wait for such a garden; without it, nothing is waited for.
   */
  async #commit(group: Group, untilMs?: number): Promise<Group> {
    const startedAtMs = this.now();
    const writes: Write[] = [];
    const starts: number[] = [];
    for (const { item } of group) {
      starts.push(writes.length);
      for (const write of item.writes) writes.push(write);
    }
    let outcomes: readonly (Outcome | undefined)[];
    try {
      outcomes = await this.#apply(writes, untilMs);
    } catch (error) {
      if (!(error instanceof PlantStoreError) && group.length > 1) {
        return this.#commitEach(group, untilMs);
      }
      if (error instanceof PlantStoreError) this.#failGroup(group, error, untilMs !== undefined);
      else this.#reject(group, error);
      return [];
    }
    const outcomeOf = (index: number) => outcomes[starts[index] as number];
    const held = group.filter((_, index) => outcomeOf(index) === undefined);
    if (held.length === group.length) return held;
    const applied = outcomes.filter((outcome) => outcome !== undefined);
    const durationMs = untilMs === undefined ? this.now() - startedAtMs : undefined;
    this.observer.onCommit?.(applied, durationMs);
    this.#settler.settle(group, ({ item }, index) => {
      // An entry has all of its outcomes or none.
      if (outcomeOf(index)) item.resolve(outcomes as readonly Outcome[], starts[index] as number);
    });
    return held;
  }

  #apply(writes: readonly Write[], untilMs: number | undefined) {
    const { contended } = this.storage;
    if (!contended) return this.storage.apply(writes);
    return untilMs === undefined
      ? contended.applyUnlessHeld(writes)
      : contended.applyBefore(writes, untilMs);
  }

  /** The storage failed: the whole group fails with it. */
  #failGroup(group: Group, error: PlantStoreError, hasWaitedForGarden: boolean): void {
    this.observer.onFailure?.(error);
    this.#reject(group, error);
    // The others have waited long enough: the next try may take as long, and fail as well.
    const mayFailAgain = error.code === "unavailable" && !hasWaitedForGarden;
    if (mayFailAgain) this.#refuseLate(storageError("unavailable", error));
  }

  /** A write is at fault, not the storage: tried alone, only that one fails. */
  async #commitEach(group: Group, untilMs: number | undefined): Promise<Group> {
    const held: WaitingEntry[] = [];
    for (const entry of group) held.push(...(await this.#commit([entry], untilMs)));
    return held;
  }

  #reject(group: Group, error: unknown): void {
    this.#settler.settle(group, ({ item }) => item.reject(error));
  }

  #gather(): Promise<void> {
    return gather(() => this.#waiting.length >= groupWritesMax);
  }

  /** A commit that does not end also holds up all that wait after it. */
  #giveUp(group: Group): void {
    this.#isStuck = true;
    this.observer.onStuck?.(true);
    this.#reject(group, unknownOutcome("The commit took too long."));
    const waiting: WaitingEntry[] = [];
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) waiting.push(next);
    this.#reject(waiting, overloaded);
  }
}

/** Calls `onSlow`, then `onDeadline`, unless the function that it returns is called before. */
function watch(onSlow: () => void, onDeadline: () => void): () => void {
  let timer = setTimeout(() => {
    onSlow();
    timer = setTimeout(onDeadline, deadlineMs - slowMs);
  }, slowMs);
  return () => clearTimeout(timer);
}

/** Settles the entries of a group, a bounded number per tick. The next commit doesn't wait for it. */
class Settler {
  /** Groups that aren't fully settled yet. */
  #unfinished = 0;

  get isIdle(): boolean {
    return this.#unfinished === 0;
  }

  settle(group: Group, settle: (entry: WaitingEntry, index: number) => void, from = 0): void {
    const to = Math.min(from + settledPerTick, group.length);
    for (let index = from; index < to; index++) settle(group[index] as WaitingEntry, index);
    if (to === group.length) return;
    this.#unfinished++;
    setImmediate(() => {
      this.#unfinished--;
      this.settle(group, settle, to);
    });
  }
}
