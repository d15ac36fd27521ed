/**
 * Bounds how much runs at the same time, in all and for each garden. What doesn't fit waits, garden
 * by garden.
 */
import { FairQueue } from "./fair-queue.ts";
import { overloaded } from "./overload.ts";

interface QueuedWork {
  readonly start: () => void;
  readonly refuse: () => void;
}

export class Semaphore {
  readonly #gardenPermits: number;
  #free: number;
  readonly #running = new Map<string, number>();
  readonly #waiting: FairQueue<QueuedWork>;

  constructor(permits: number, gardenPermits: number, now?: () => number) {
    this.#free = permits;
    this.#gardenPermits = gardenPermits;
    this.#waiting = new FairQueue(now);
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Fails with `overloaded` if the work waited too long. */
  async run<Result>(garden: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0 && this.#hasPermit(garden)) this.#count(garden, 1);
    else {
      await new Promise<void>((resolve, reject) => {
        const start = () => {
          this.#count(garden, 1);
          resolve();
        };
        this.#waiting.push(garden, { start, refuse: () => reject(overloaded) });
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
      const next = this.#waiting.shift(this.#hasPermit);
      if (!next) return;
      if (this.#waiting.isLate(next)) next.item.refuse();
      else next.item.start();
    }
  }
}
