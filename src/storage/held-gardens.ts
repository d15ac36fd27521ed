/**
 * Writes to gardens that somebody else holds: another instance that commits to them, or a program
 * with a lock. Each of these gardens has a lane, so its writes wait for it and no others do. Once
 * its lane is empty, the garden's writes share commits with others again.
 */
import { PlantStoreError } from "../domain/errors.ts";
import { groupWritesMax, type WaitingEntry, WriteGroup } from "./write-group.ts";

/** How long a write waits for its garden, counted from when it was queued. */
export const heldMsMax = 5_000;
/** What may wait for one garden: requests and slices of bulks, and the text that they store. */
export const heldRequestsMax = 1_024;
export const heldCharactersMax = 1024 * 1024;
/** A group waits at least this long, even if its oldest write has no time left. */
export const attemptMsMin = 250;

const gardenHeld = new PlantStoreError(
  "unavailable",
  "Other writes to this garden are taking too long: another instance is busy with it, or another " +
    "program has locked it. Nothing was changed; try again shortly.",
);

interface Commits {
  /** Settles the group, and returns what couldn't be committed by then: the garden is still held. */
  commit(group: readonly WaitingEntry[], untilMs: number): Promise<readonly WaitingEntry[]>;
  reject(entries: readonly WaitingEntry[], error: PlantStoreError): void;
  /** Waits for clients that just got a response and send their next write. */
  gather(): Promise<void>;
}

interface Lane {
  readonly garden: string;
  /** The oldest first. Entries of the current attempt aren't in it. */
  waiting: WaitingEntry[];
  characters: number;
  isAttempting: boolean;
}

export class HeldGardens {
  /** The lane whose attempt is next comes first. */
  readonly #lanes = new Map<string, Lane>();
  #attempts = 0;

  constructor(
    private readonly commits: Commits,
    /** How many gardens are waited for at the same time. */
    private readonly attemptsMax: number,
    private readonly now: () => number,
  ) {}

  get isEmpty(): boolean {
    return this.#lanes.size === 0;
  }

  has(garden: string): boolean {
    return this.#lanes.has(garden);
  }

  /** Rejects what there is no room for, unless it continues a bulk. */
  add(entry: WaitingEntry): void {
    const { garden, characters, isContinued } = entry.item;
    const lane = this.#lanes.get(garden) ?? {
      garden,
      waiting: [],
      characters: 0,
      isAttempting: false,
    };
    const hasRoom =
      lane.waiting.length < heldRequestsMax && lane.characters + characters <= heldCharactersMax;
    if (!hasRoom && !isContinued) {
      this.commits.reject([entry], gardenHeld);
      return;
    }
    lane.waiting.push(entry);
    lane.characters += characters;
    this.#lanes.set(garden, lane);
    this.#startAttempts();
  }

  #startAttempts(): void {
    for (const lane of this.#lanes.values()) {
      if (this.#attempts === this.attemptsMax) return;
      if (!lane.isAttempting) void this.#attempt(lane);
    }
  }

  async #attempt(lane: Lane): Promise<void> {
    this.#attempts++;
    lane.isAttempting = true;
    try {
      await this.commits.gather();
      const group = takeGroup(lane);
      const untilMs = Math.max((group[0]?.queuedAtMs ?? 0) + heldMsMax, this.now() + attemptMsMin);
      putBack(lane, await this.commits.commit(group, untilMs));
      // Otherwise a busy garden would leave its lane after each commit.
      await this.commits.gather();
    } finally {
      lane.isAttempting = false;
      this.#attempts--;
      // Behind the others, which may have waited for this attempt to end.
      this.#lanes.delete(lane.garden);
      this.#lanes.set(lane.garden, lane);
      this.#endOverdue();
      this.#startAttempts();
    }
  }

  /** Drops empty lanes, too. */
  #endOverdue(): void {
    const overdueMs = this.now() - heldMsMax;
    for (const lane of this.#lanes.values()) {
      const overdue = lane.waiting.filter(({ queuedAtMs }) => queuedAtMs <= overdueMs);
      if (overdue.length > 0) {
        lane.waiting = lane.waiting.filter(({ queuedAtMs }) => queuedAtMs > overdueMs);
        lane.characters -= charactersOf(overdue);
        this.commits.reject(overdue, gardenHeld);
      }
      if (lane.waiting.length === 0 && !lane.isAttempting) this.#lanes.delete(lane.garden);
    }
  }
}

function charactersOf(entries: readonly WaitingEntry[]): number {
  return entries.reduce((sum, { item }) => sum + item.characters, 0);
}

function takeGroup(lane: Lane): readonly WaitingEntry[] {
  const group = new WriteGroup(groupWritesMax);
  for (const entry of lane.waiting) {
    if (!group.fits(lane.garden, entry.item)) break;
    group.add(entry);
  }
  lane.waiting = lane.waiting.slice(group.entries.length);
  lane.characters -= charactersOf(group.entries);
  return group.entries;
}

function putBack(lane: Lane, entries: readonly WaitingEntry[]): void {
  lane.waiting = [...entries, ...lane.waiting];
  lane.characters += charactersOf(entries);
}
