/**
 * Bounds how many chunked bodies are dropped after their responses. The runtime parses what it
 * drops: without a bound, 100 connections held others up for half a second.
 */
const droppedPerSecondMax = 16;

export class DropLimit {
  #secondStartMs = Number.NEGATIVE_INFINITY;
  #dropped = 0;

  constructor(private readonly now: () => number) {}

  /** Whether one more may be dropped. */
  take(): boolean {
    const nowMs = this.now();
    if (nowMs - this.#secondStartMs >= 1_000) {
      this.#secondStartMs = nowMs;
      this.#dropped = 0;
    }
    return ++this.#dropped <= droppedPerSecondMax;
  }
}
