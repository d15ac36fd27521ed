/**
 * Bounds how much runs at the same time, in total and for each garden. The rest waits, garden by
 * garden.
 */
import type { MaybePromise } from "../shared/promises.ts";
import { RefusingQueue } from "./fair-queue.ts";

interface QueuedWork {
  readonly start: () => void;
  readonly reject: (error: unknown) => void;
}

export class Semaphore {
  readonly #gardenPermits: number;
  #free: number;
  readonly #running = new Map<string, number>();
  readonly #waiting: RefusingQueue<QueuedWork>;

  constructor(permits: number, gardenPermits: number, now?: () => number) {
    this.#free = permits;
    this.#gardenPermits = gardenPermits;
    this.#waiting = new RefusingQueue(now);
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Fails with `overloaded` if the work waited too long. */
  async run<Result>(garden: string, work: () => MaybePromise<Result>): Promise<Result> {
    if (this.#free > 0 && this.#hasPermit(garden)) this.#count(garden, 1);
    else {
      await new Promise<void>((resolve, reject) => {
        const start = () => {
          this.#count(garden, 1);
          resolve();
        };
        this.#waiting.push(garden, { start, reject });
      });
    }
    try {
      return await work();
    } finally {
      this.#count(garden, -1);
      this.#startWaiting();
    }
  }

  readonly #hasPermit = (garden: string) => (this.#running.get(garden) ?? 0) < this.#gardenPermits;

  #count(garden: string, change: 1 | -1): void {
    this.#free -= change;
    const running = (this.#running.get(garden) ?? 0) + change;
    if (running === 0) this.#running.delete(garden);
    else this.#running.set(garden, running);
  }

  #startWaiting(): void {
    while (this.#free > 0) {
      const next = this.#waiting.take(this.#hasPermit);
      if (!next) return;
      next.start();
    }
  }
}
