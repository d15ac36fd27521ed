/**
 * Lets long work through one piece at a time, with a turn of the event loop for all others in
 * between.
 */
import { overloaded } from "../domain/errors.ts";

export class OneATurn {
  readonly #waitingMax: number;
  #waiting = 0;
  #last = Promise.resolve();

  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  /** Resolves when its turn has come. Fails with `overloaded` if as many wait as may. */
  async enter(): Promise<void> {
    if (this.#waiting >= this.#waitingMax) throw overloaded;
    this.#waiting++;
    this.#last = this.#last.then(() => new Promise((resolve) => setImmediate(resolve)));
    await this.#last;
    this.#waiting--;
  }
}
