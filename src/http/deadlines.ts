/**
 * One deadline for many waits of the same length: they end in the order in which they began, so a
 * look at the oldest once a second serves all. A timer for each took about 5 % of a
 * create's time in a profile.
 */

const lookMs = 1_000;

export interface Watched {
  readonly endsAtMs: number;
  readonly onLate: () => void;
}

export class Deadlines {
  readonly #limitMs: number;
  /** In the order of insertion, the oldest first. */
  readonly #watched = new Set<Watched>();
  #timer: Timer | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /**
   * Calls `onLate` once the limit has passed, up to a second later, unless it is forgotten before.
   */
  watch(onLate: () => void): Watched {
    const watched = { endsAtMs: performance.now() + this.#limitMs, onLate };
    this.#watched.add(watched);
    this.#timer ??= setInterval(() => this.#look(), lookMs);
    return watched;
  }

  forget(watched: Watched): void {
    this.#watched.delete(watched);
  }

  #look(): void {
    const nowMs = performance.now();
    for (const watched of this.#watched) {
      if (watched.endsAtMs > nowMs) return;
      this.#watched.delete(watched);
      watched.onLate();
    }
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
