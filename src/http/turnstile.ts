/**
 * Lets a bounded number of requests through in each turn of the event loop; the others wait for the next
 * turns, and those that have waited too long are refused. Without it a turn lasts for as long as clients
 * ask: the runtime goes on reading while a thousand connections are ready, and commits, timers and messages
 * of other threads wait for seconds.
 */

export interface TurnstileOptions {
  /** How long a turn should take. */
  readonly turnMs: number;
  /** How many pass in a turn, however quick, and however slow they are. */
  readonly passedMax: number;
  readonly passedMin: number;
  /** Those who come when so many wait are refused. */
  readonly waitingMax: number;
  /** Who waited longer is refused too, which is quick, so that others are answered in time. */
  readonly patienceMs: number;
}

export const turnstileDefaults: TurnstileOptions = {
  turnMs: 25,
  passedMax: 128,
  passedMin: 8,
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
  #begunAtMs = 0;
  #passed = 0;
  /** How many of those who wait pass in the next turn. */
  #passing: number;

  constructor(options = turnstileDefaults) {
    this.#options = options;
    this.#passing = options.passedMax;
  }

  /** Absent: it may pass at once. Else it is told when its turn has come, and whether it may. */
  enter(nowMs: number): Promise<boolean> | undefined {
    const { passedMax, turnMs } = this.#options;
    if (this.#passed === 0) this.#begin(nowMs);
    const isOpen = this.#passed < passedMax && nowMs - this.#begunAtMs < turnMs;
    if (isOpen && this.#waiting.length === 0) {
      this.#passed++;
      return undefined;
    }
    return new Promise((enter) => this.#waiting.push({ sinceMs: nowMs, enter }));
  }

  #begin(nowMs: number): void {
    this.#begunAtMs = nowMs;
    setImmediate(this.#turn);
  }

  readonly #turn = () => {
    const nowMs = performance.now();
    this.#adapt(nowMs - this.#begunAtMs);
    const inTime = this.#waiting.findIndex(
      ({ sinceMs }) => nowMs - sinceMs <= this.#options.patienceMs,
    );
    const late = this.#waiting.splice(0, inTime < 0 ? this.#waiting.length : inTime);
    const surplus = this.#waiting.splice(this.#options.waitingMax);
    const passing = this.#waiting.splice(0, this.#passing);
    this.#passed = passing.length;
    if (this.#passed > 0) this.#begin(nowMs);
    for (const { enter } of late) enter(false);
    for (const { enter } of surplus) enter(false);
    for (const { enter } of passing) enter(true);
  };

  /** As many as would have taken the time of a turn; more only by and by. */
  #adapt(tookMs: number): void {
    const { turnMs, passedMax, passedMin } = this.#options;
    const wanted = Math.min(this.#passed * (turnMs / tookMs), 2 * this.#passing, passedMax);
    this.#passing = Math.max(Math.floor(wanted), passedMin);
  }
}
