/**
 * A queue for each garden, served in turn. If a garden gets a thousand requests, they wait for each
 * other and hold up nobody else.
 */
import type { PlantStoreError } from "../domain/errors.ts";
import { lateAfterMs, overloaded } from "./overload.ts";

export interface QueueEntry<Item> {
  readonly item: Item;
  readonly queuedAtMs: number;
}

/** Names a queue for what belongs to no garden. A garden's name never holds a line break. */
export function sharedQueue(name: string): string {
  return `\n${name}`;
}

export class FairQueue<Item> {
  /** By garden. The garden whose turn is next comes first. */
  readonly #queues = new Map<string, QueueEntry<Item>[]>();
  readonly #now: () => number;
  length = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** How many gardens have something in it. */
  get gardens(): number {
    return this.#queues.size;
  }

  push(garden: string, item: Item): void {
    const entry = { item, queuedAtMs: this.#now() };
    const queue = this.#queues.get(garden);
    if (queue) queue.push(entry);
    else this.#queues.set(garden, [entry]);
    this.length++;
  }

  /**
   * Removes the first item of the garden whose turn it is. Skips gardens whose first item doesn't
   * fit.
   */
  shift(fits: (garden: string, item: Item) => boolean = () => true): QueueEntry<Item> | undefined {
    for (const [garden, queue] of this.#queues) {
      const entry = queue[0];
      if (!entry || !fits(garden, entry.item)) continue;
      queue.shift();
      this.#queues.delete(garden);
      if (queue.length > 0) this.#queues.set(garden, queue);
      this.length--;
      return entry;
    }
    return undefined;
  }

  /**
   * Removes items that have waited too long, the oldest of each garden first, unless they
   * `mayWait`.
   */
  removeLate(mayWait: (item: Item) => boolean): QueueEntry<Item>[] {
    const removed: QueueEntry<Item>[] = [];
    for (const [garden, queue] of this.#queues) {
      if (!queue[0] || !this.isLate(queue[0])) continue;
      const kept = queue.filter((entry) => {
        const stays = !this.isLate(entry) || mayWait(entry.item);
        if (!stays) removed.push(entry);
        return stays;
      });
      if (kept.length > 0) this.#queues.set(garden, kept);
      else this.#queues.delete(garden);
    }
    this.length -= removed.length;
    return removed;
  }

  /** Removes everything that the garden has in it. */
  removeGarden(garden: string): readonly QueueEntry<Item>[] {
    const removed = this.#queues.get(garden) ?? [];
    this.#queues.delete(garden);
    this.length -= removed.length;
    return removed;
  }

  isLate({ queuedAtMs }: QueueEntry<Item>): boolean {
    return this.#now() - queuedAtMs > lateAfterMs;
  }
}

/** A queue that refuses what is late when its turn comes. */
export class RefusingQueue<
  Item extends { reject(error: PlantStoreError): void },
> extends FairQueue<Item> {
  /** Removes the next item that is in time, if any. */
  take(fits?: (garden: string, item: Item) => boolean): Item | undefined {
    for (;;) {
      const next = this.shift(fits);
      if (next === undefined || !this.isLate(next)) return next?.item;
      next.item.reject(overloaded);
    }
  }
}
