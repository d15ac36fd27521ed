/**
 * Gathers writes that wait at the same time into one durable commit and resolves each after it. It
 * knows no engine: a commit is whatever `apply` does. Gardens take turns in each group, so one that
 * writes a lot only holds up itself.
 */
import { FairQueue } from "../async/fair-queue.ts";
import { overloaded, PlantStoreError } from "../domain/errors.ts";
import { groupPlantsMax, groupTextMax, textOf } from "../domain/plants.ts";
import {
  GardenLocked,
  type Outcome,
  type PlantStorage,
  type PlantWriter,
  type Write,
} from "../domain/ports.ts";
import { storageError, unknownOutcome } from "./failures.ts";

/** Counts commits and reports them. */
interface CommitObserver {
  /** A group is about to be committed; its first write has waited for that long. */
  onStart?(waitedMs: number): void;
  onCommit?(outcomes: readonly Outcome[], durationMs: number): void;
  onFailure?(error: PlantStoreError): void;
  /** A commit takes long, and goes on. */
  onSlow?(): void;
}

/** While other gardens wait, one garden has at most `groupPlantsMax` of them. */
export const groupWritesMax = 1_024;
const slowMs = 3_000;
/** How long a commit may take. After that its outcome is unknown. */
export const deadlineMs = 10_000;

/** Resolving more in one tick delayed other requests by 10 ms. */
const settledPerTick = 128;

/**
 * Ticks between two commits, in which clients that just got a response send their next write.
 * Otherwise half of them always wait for the other half: with 32 busy connections, groups of 16
 * became 26, and PostgreSQL's work for a create a third less.
 */
const gatheringTicks = 4;

/** How long a garden's writes are refused at once after another program has locked it. */
export const lockedMs = 1_000;

const gardenLocked = new PlantStoreError(
  "unavailable",
  "Another program has locked this garden. Nothing was changed; try again shortly.",
);

interface WaitingWrites {
  readonly garden: string;
  readonly writes: readonly Write[];
  /** How many characters their names and tags have. */
  readonly text: number;
  /** Whether earlier writes of the same request are committed already. */
  readonly isContinued: boolean;
  /** Takes the outcomes of the whole group, and where its own begin. */
  readonly resolve: (outcomes: readonly Outcome[], from: number) => void;
  readonly reject: (error: unknown) => void;
}

type Group = readonly WaitingWrites[];

export class GroupCommit implements PlantWriter {
  readonly #storage: Pick<PlantStorage, "apply">;
  readonly #observer: CommitObserver;
  readonly #waiting = new FairQueue<WaitingWrites>();
  /** Gardens that another program has locked, and until when their writes are refused at once. */
  readonly #lockedUntilMs = new Map<string, number>();
  #isBusy = false;
  /** Whether the commit under way is past its deadline. */
  isStuck = false;
  /** Groups that are not fully settled yet. */
  #settling = 0;

  constructor(storage: Pick<PlantStorage, "apply">, observer: CommitObserver = {}) {
    this.#storage = storage;
    this.#observer = observer;
  }

  /** Fails with `overloaded` while a commit is stuck: there is no telling when it ends. */
  write(write: Write): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        garden: write.garden,
        writes: [write],
        text: textOf(write),
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
        text: writes.reduce((text, write) => text + textOf(write), 0),
        isContinued,
        resolve: (outcomes, from) => resolve(outcomes.slice(from, from + writes.length)),
        reject,
      });
    });
  }

  /** Resolves once no write is waiting or under way. */
  async drain(): Promise<void> {
    while (this.#isBusy || this.#settling > 0) await Bun.sleep(1);
  }

  #enqueue(entry: WaitingWrites): void {
    const refusal = this.#refusal(entry.garden);
    if (refusal) {
      entry.reject(refusal);
      return;
    }
    this.#waiting.push(entry.garden, entry);
    if (this.#isBusy) return;
    this.#isBusy = true;
    // At the end of this tick, so that all requests that it brings share the commit.
    setImmediate(() => this.#commitAll());
  }

  async #commitAll(): Promise<void> {
    for (let group = this.#takeGroup(); group.length > 0; group = this.#takeGroup()) {
      const taken = group;
      let timer = setTimeout(() => {
        this.#observer.onSlow?.();
        timer = setTimeout(() => this.#giveUp(taken), deadlineMs - slowMs);
      }, slowMs);
      await this.#commit(group);
      clearTimeout(timer);
      this.isStuck = false;
      if (group.length > 1) await this.#gather();
    }
    this.#isBusy = false;
  }

  /** The next group. What has waited too long and still doesn't fit into it is refused. */
  #takeGroup(): Group {
    // A garden that is alone may fill the group: larger groups are faster.
    const gardenWritesMax = this.#waiting.gardens === 1 ? groupWritesMax : groupPlantsMax;
    const group: WaitingWrites[] = [];
    let groupWrites = 0;
    /** By garden, what the group has of it. */
    const taken = new Map<string, { readonly writes: number; readonly text: number }>();
    const fits = (garden: string, { writes, text }: WaitingWrites) => {
      if (group.length > 0 && groupWrites + writes.length > groupWritesMax) return false;
      const own = taken.get(garden);
      if (own === undefined) return true;
      return own.writes + writes.length <= gardenWritesMax && own.text + text <= groupTextMax;
    };
    for (let next = this.#waiting.shift(fits); next; next = this.#waiting.shift(fits)) {
      const { garden, writes, text } = next.item;
      const own = taken.get(garden) ?? { writes: 0, text: 0 };
      taken.set(garden, { writes: own.writes + writes.length, text: own.text + text });
      if (group.length === 0) this.#observer.onStart?.(performance.now() - next.queuedAtMs);
      groupWrites += writes.length;
      group.push(next.item);
    }
    if (this.#waiting.length > 0) this.#refuseLate(overloaded);
    return group;
  }

  /** Unless it continues a bulk: half a bulk is worse than a slow one. */
  #refuseLate(error: PlantStoreError): void {
    this.#reject(
      this.#waiting.removeLate(({ isContinued }) => isContinued),
      error,
    );
  }

  /** Settles every entry of the group. */
  async #commit(group: Group): Promise<void> {
    const startedAtMs = performance.now();
    const writes: Write[] = [];
    const starts: number[] = [];
    for (const entry of group) {
      starts.push(writes.length);
      for (const write of entry.writes) writes.push(write);
    }
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#storage.apply(writes);
    } catch (error) {
      return this.#recover(group, error);
    }
    this.#observer.onCommit?.(outcomes, performance.now() - startedAtMs);
    this.#settle(group, (entry, index) => entry.resolve(outcomes, starts[index] as number));
  }

  /** Rejects what caused the failure, or may have, and commits the rest again. */
  async #recover(group: Group, error: unknown): Promise<void> {
    if (error instanceof PlantStoreError) {
      this.#observer.onFailure?.(error);
      this.#reject(group, error);
      // These waited for it long enough: the next try may take as long, and fail as well.
      if (error.code === "unavailable") this.#refuseLate(storageError("unavailable", error));
      return;
    }
    // A garden or a write is at fault, not the storage: tried alone, only that one fails.
    const isLocked = error instanceof GardenLocked;
    const parts = Map.groupBy(group, (entry) => (isLocked ? entry.garden : entry));
    if (parts.size > 1) {
      for (const part of parts.values()) await this.#commit(part);
      return;
    }
    const { garden } = group[0] as WaitingWrites;
    if (isLocked) this.#lockedUntilMs.set(garden, performance.now() + lockedMs);
    this.#reject(group, isLocked ? gardenLocked : error);
  }

  /** Why a write isn't even queued, if so. */
  #refusal(garden: string): PlantStoreError | undefined {
    if (this.isStuck) return overloaded;
    const untilMs = this.#lockedUntilMs.get(garden);
    if (untilMs === undefined) return undefined;
    if (performance.now() < untilMs) return gardenLocked;
    this.#lockedUntilMs.delete(garden);
    return undefined;
  }

  #reject(group: Group, error: unknown): void {
    this.#settle(group, ({ reject }) => reject(error));
  }

  /** A bounded number per tick. The next commit doesn't wait for the rest. */
  #settle(group: Group, settle: (entry: WaitingWrites, index: number) => void, from = 0): void {
    const to = Math.min(from + settledPerTick, group.length);
    for (let index = from; index < to; index++) settle(group[index] as WaitingWrites, index);
    if (to === group.length) return;
    this.#settling++;
    setImmediate(() => {
      this.#settling--;
      this.#settle(group, settle, to);
    });
  }

  /** Unless the next group is full already. */
  async #gather(): Promise<void> {
    for (let tick = 0; tick < gatheringTicks && this.#waiting.length < groupWritesMax; tick++) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** A commit that does not end also holds up all that wait after it. */
  #giveUp(group: Group): void {
    this.isStuck = true;
    this.#reject(group, unknownOutcome("The commit took too long."));
    const waiting: WaitingWrites[] = [];
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      waiting.push(next.item);
    }
    this.#reject(waiting, overloaded);
  }
}
