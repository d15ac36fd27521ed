/**
 * Where requests wait for one of so many places, in the order of their coming. Who has waited too
 * long when the turn comes is refused, which is quick, so that others are answered in time.
 */
import { overloaded } from "../../domain/errors.ts";

/** Who comes when so many wait is refused at once, and will ask again the sooner. */
const waitingMax = 16_384;
const patienceMs = 500;
/** So that a turn of the event loop does not last for as long as it takes to refuse thousands. */
const refusedATurn = 256;

interface Waiter {
  readonly sinceMs: number;
  readonly enter: () => void;
  readonly refuse: (error: Error) => void;
}

export class WaitingLine {
  readonly #places: number;
  #taken = 0;
  readonly #waiting: Waiter[] = [];

  constructor(places: number) {
    this.#places = places;
  }

  /** Does the work once there is a place for it, or fails with `overloaded`. */
  async pass<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.enter();
    try {
      return await work();
    } finally {
      this.leave();
    }
  }

  /**
   * Absent: there is a place at once. Else it resolves when there is one, or fails with
   * `overloaded`. Whoever got a place leaves it.
   */
  enter(): Promise<void> | undefined {
    if (this.#taken < this.#places) {
      this.#taken++;
      return undefined;
    }
    if (this.#waiting.length >= waitingMax) throw overloaded;
    const sinceMs = performance.now();
    return new Promise((enter, refuse) => this.#waiting.push({ sinceMs, enter, refuse }));
  }

  /** Passes the place on. */
  readonly leave = (): void => {
    const nowMs = performance.now();
    for (let refused = 0; refused < refusedATurn; refused++) {
      const waiter = this.#waiting.shift();
      // If nobody waits behind it, there is no crowd that must be made smaller.
      const isLate = waiter && this.#waiting.length > 0 && nowMs - waiter.sinceMs > patienceMs;
      if (!isLate) {
        if (waiter) waiter.enter();
        else this.#taken--;
        return;
      }
      waiter.refuse(overloaded);
    }
    setImmediate(this.leave);
  };
}
