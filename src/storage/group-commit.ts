/**
 * Gathers writes that wait at the same time into one durable commit and resolves each after it. It
 * knows no engine: a commit is whatever `apply` does. Gardens take turns in each group, so one that
 * writes a lot only holds up itself.
 */
import { FairQueue, type QueueEntry } from "../async/fair-queue.ts";
import { overloaded, PlantStoreError } from "../domain/errors.ts";
import { charactersOf, groupCharactersMax, groupPlantsMax } from "../domain/plants.ts";
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
  /** See `charactersOf`. */
  readonly characters: number;
  /** Whether earlier writes of the same request are committed already. */
  readonly isContinued: boolean;
  /** Takes the outcomes of the whole group, and where its own begin. */
  readonly resolve: (outcomes: readonly Outcome[], from: number) => void;
  readonly reject: (error: unknown) => void;
}

type Group = readonly WaitingWrites[];

/** A group while it's being filled. */
class GroupBuilder {
  readonly entries: WaitingWrites[] = [];
  /** When the first of them was queued. */
  queuedAtMs = 0;
  #writes = 0;
  /** By garden, how much the group has of it. */
  readonly #gardens = new Map<string, { writes: number; characters: number }>();

  constructor(private readonly gardenWritesMax: number) {}

  /** The first of all always fits, and the first of each garden if the group has room for it. */
  readonly fits = (garden: string, { writes, characters }: WaitingWrites): boolean => {
    if (this.entries.length > 0 && this.#writes + writes.length > groupWritesMax) return false;
    const own = this.#gardens.get(garden);
    if (own === undefined) return true;
    const hasRoom = own.writes + writes.length <= this.gardenWritesMax;
    return hasRoom && own.characters + characters <= groupCharactersMax;
  };

  add({ item, queuedAtMs }: QueueEntry<WaitingWrites>): void {
    const own = this.#gardens.get(item.garden) ?? { writes: 0, characters: 0 };
    own.writes += item.writes.length;
    own.characters += item.characters;
    this.#gardens.set(item.garden, own);
    this.#writes += item.writes.length;
    if (this.entries.length === 0) this.queuedAtMs = queuedAtMs;
    this.entries.push(item);
  }
}

export class GroupCommit implements PlantWriter {
  readonly #waiting = new FairQueue<WaitingWrites>();
  /** Gardens that another program has locked, and until when their writes are refused at once. */
  readonly #lockedUntilMs = new Map<string, number>();
  #isBusy = false;
  /** Whether the commit under way is past its deadline. */
  isStuck = false;
  /** Groups that are not fully settled yet. */
  #settling = 0;

  constructor(
    private readonly storage: Pick<PlantStorage, "apply">,
    private readonly observer: CommitObserver = {},
  ) {}

  /** Fails with `overloaded` while a commit is stuck: there is no telling when it ends. */
  write(write: Write): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#enqueue({
        garden: write.garden,
        writes: [write],
        characters: charactersOf(write),
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
        characters: writes.reduce((sum, write) => sum + charactersOf(write), 0),
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
    try {
      while (this.#waiting.length > 0) await this.#commitNext();
    } finally {
      // Even if the observer throws: otherwise nothing would ever be committed again.
      this.#isBusy = false;
    }
  }

  async #commitNext(): Promise<void> {
    const { entries, queuedAtMs } = this.#takeGroup();
    this.observer.onStart?.(performance.now() - queuedAtMs);
    this.#refuseLate(overloaded);
    let timer = setTimeout(() => {
      this.observer.onSlow?.();
      timer = setTimeout(() => this.#giveUp(entries), deadlineMs - slowMs);
    }, slowMs);
    try {
      await this.#commit(entries);
    } finally {
      clearTimeout(timer);
      this.isStuck = false;
    }
    if (entries.length > 1) await this.#gather();
  }

  #takeGroup(): GroupBuilder {
    // A garden that is alone may fill the group: larger groups are faster.
    const isAlone = this.#waiting.gardens === 1;
    const group = new GroupBuilder(isAlone ? groupWritesMax : groupPlantsMax);
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
      outcomes = await this.storage.apply(writes);
    } catch (error) {
      return this.#recover(group, error);
    }
    this.observer.onCommit?.(outcomes, performance.now() - startedAtMs);
    this.#settle(group, (entry, index) => entry.resolve(outcomes, starts[index] as number));
  }

  /** Rejects what caused the failure, or may have, and commits the rest again. */
  async #recover(group: Group, error: unknown): Promise<void> {
    if (error instanceof PlantStoreError) {
      this.observer.onFailure?.(error);
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
