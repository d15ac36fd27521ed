/** Bounds how much runs at the same time. What doesn't fit waits, garden by garden. */
import { overloaded } from "../domain/errors.ts";
import { FairQueue, isLate } from "./fair-queue.ts";

interface Waiter {
  readonly start: () => void;
  readonly refuse: () => void;
}

export class FairSemaphore {
  #free: number;
  readonly #waiting = new FairQueue<Waiter>();

  constructor(places: number) {
    this.#free = places;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Fails with `overloaded` if the work waited too long. */
  async run<Result>(garden: string, work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--;
    else {
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push(garden, { start: resolve, refuse: () => reject(overloaded) });
      });
    }
    try {
      return await work();
    } finally {
      this.#startNext();
    }
  }

  #startNext(): void {
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      if (!isLate(next)) {
        next.item.start();
        return;
      }
      next.item.refuse();
    }
    this.#free++;
  }
}
