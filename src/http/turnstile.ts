/**
 * Lets requests through for a bounded time in each turn of the event loop; the others wait for the
 * next turns, and those that have waited too long are refused. Without it a turn lasts for as long
 * as clients ask: the runtime goes on reading while a thousand connections are ready, and commits,
 * timers and messages of other threads wait for seconds.
 */

export interface TurnstileOptions {
  /** How long the requests of one turn may take. */
  readonly turnMs: number;
  /**
   * So many pass in any case: no crowd, only slow. The runtime breaks pipelines of requests that
   * wait.
   */
  readonly passedMin: number;
  /**
   * In a crowd, twice as long as reading and refusing took, up to this: else those would take all
   * time.
   */
  readonly crowdedTurnMs: number;
  /** Those who come when so many wait are refused. */
  readonly waitingMax: number;
  /** Who waited longer is refused too, which is quick, so that others are answered in time. */
  readonly patienceMs: number;
}

export const turnstileDefaults: TurnstileOptions = {
  turnMs: 25,
  passedMin: 32,
  crowdedTurnMs: 100,
  waitingMax: 16_384,
  patienceMs: 500,
};

interface Waiter {
  readonly sinceMs: number;
  readonly enter: (mayPass: boolean) => void;
}

export class Turnstile {
  readonly #options: TurnstileOptions;
  /** The oldest first. */
  readonly #waiting: Waiter[] = [];
  #refused: readonly Waiter[] = [];
  /** Whether something passes or waits in this turn, and whether something waits. */
  #hasBegun = false;
  #isCrowded = false;
  #begunAtMs = 0;
  #passed = 0;
  /** How long a request takes, of late. */
  #requestMs = 0;

  constructor(options = turnstileDefaults) {
    this.#options = options;
  }

  /** Absent: it may pass at once. Else it is told when its turn has come, and whether it may. */
  enter(nowMs: number): Promise<boolean> | undefined {
    const { turnMs, passedMin } = this.#options;
    if (!this.#hasBegun) this.#begin(nowMs);
    const isOpen = this.#passed < passedMin || nowMs - this.#begunAtMs < turnMs;
    if (isOpen && this.#waiting.length === 0) {
      this.#passed++;
      return undefined;
    }
    if (!this.#isCrowded) this.#crowd();
    return new Promise((enter) => this.#waiting.push({ sinceMs: nowMs, enter }));
  }

  #begin(nowMs: number): void {
    this.#hasBegun = true;
    this.#begunAtMs = nowMs;
    this.#passed = 0;
    setImmediate(this.#letThrough);
  }

  #crowd(): void {
    this.#isCrowded = true;
    setImmediate(this.#refuse);
  }

  readonly #letThrough = () => {
    this.#hasBegun = this.#isCrowded;
    if (!this.#isCrowded) return;
    const { turnMs, crowdedTurnMs, waitingMax, patienceMs } = this.#options;
    const nowMs = performance.now();
    const tookMs = nowMs - this.#begunAtMs;
    if (this.#passed > 0) this.#requestMs = tookMs / this.#passed;

    const inTime = this.#waiting.findIndex(({ sinceMs }) => nowMs - sinceMs <= patienceMs);
    const late = this.#waiting.splice(0, inTime < 0 ? this.#waiting.length : inTime);
    this.#refused = late.concat(this.#waiting.splice(waitingMax));

    const spanMs = Math.min(Math.max(turnMs, 2 * tookMs), crowdedTurnMs);
    const passing = this.#waiting.splice(0, Math.max(1, Math.floor(spanMs / this.#requestMs)));
    this.#begunAtMs = nowMs;
    this.#passed = passing.length;
    for (const { enter } of passing) enter(true);
  };

  /** Follows when those who were let through have done what they can without waiting. */
  readonly #refuse = () => {
    const nowMs = performance.now();
    if (this.#passed > 0) this.#requestMs = (nowMs - this.#begunAtMs) / this.#passed;
    for (const { enter } of this.#refused) enter(false);
    this.#refused = [];
    this.#hasBegun = false;
    this.#isCrowded = false;
    if (this.#waiting.length === 0) return;
    this.#begin(nowMs);
    this.#crowd();
  };
}
