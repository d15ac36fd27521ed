/** A stop in two steps: first nothing new begins, later nothing is waited for any longer. */

/** How long it may take to find out what became of the request under way. */
const settleMs = 15_000;
/** npm, `timeout` and double clicks ask twice when they mean it once. */
const repeatedMs = 1_000;

export class Stop {
  readonly #asked = new AbortController();
  readonly #over = new AbortController();
  /** Aborted: nothing new begins. */
  readonly asked = this.#asked.signal;
  /** Aborted: nothing is waited for any longer. */
  readonly over = this.#over.signal;
  #askedAtMs = 0;

  ask(): void {
    if (this.asked.aborted) return;
    this.#askedAtMs = performance.now();
    this.#asked.abort();
    setTimeout(() => this.#over.abort(), settleMs);
  }

  /** As a person asks: again, at least a second later, means at once. */
  press(): void {
    const isAgain = this.asked.aborted && performance.now() - this.#askedAtMs >= repeatedMs;
    if (isAgain) this.#over.abort();
    else this.ask();
  }
}
