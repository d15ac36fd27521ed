/** Waiting writes, and which of them fit into one commit. */

import { sliceCharactersMax } from "../domain/plants.ts";
import type { Outcome, Write } from "../domain/ports.ts";
import type { QueueEntry } from "../limits/fair-queue.ts";

/** While other gardens wait, one garden has at most `slicePlantsMax` of them. */
export const groupWritesMax = 1_024;

/** The writes of one request, or of one slice of a bulk. */
export interface WaitingWrites {
  readonly garden: string;
  readonly writes: readonly Write[];
  /** See `storedCharacters`. */
  readonly characters: number;
  /** Whether earlier writes of the same request are committed already. */
  readonly isContinued: boolean;
  /** Gets the outcomes of the whole group, and the index of this entry's first one. */
  readonly resolve: (outcomes: readonly Outcome[], from: number) => void;
  readonly reject: (error: unknown) => void;
}

export type WaitingEntry = QueueEntry<WaitingWrites>;

/** A group while it's being filled. */
export class WriteGroup {
  readonly entries: WaitingEntry[] = [];
  #writes = 0;
  /** How much of each garden the group has. */
  readonly #gardens = new Map<string, { writes: number; characters: number }>();

  constructor(private readonly gardenWritesMax: number) {}

  /**
   * The first entry always fits. So does the first of each garden, if the group has room for it.
   */
  readonly fits = (garden: string, { writes, characters }: WaitingWrites): boolean => {
    if (this.entries.length > 0 && this.#writes + writes.length > groupWritesMax) return false;
    const own = this.#gardens.get(garden);
    if (own === undefined) return true;
    const hasRoom = own.writes + writes.length <= this.gardenWritesMax;
    return hasRoom && own.characters + characters <= sliceCharactersMax;
  };

  add(entry: WaitingEntry): void {
    const { garden, writes, characters } = entry.item;
    const own = this.#gardens.get(garden) ?? { writes: 0, characters: 0 };
    own.writes += writes.length;
    own.characters += characters;
    this.#gardens.set(garden, own);
    this.#writes += writes.length;
    this.entries.push(entry);
  }
}
