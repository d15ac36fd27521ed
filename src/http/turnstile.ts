/**
 * Lets a bounded number of requests through in each turn of the event loop; the others wait for the next
 * turns, and those that have waited too long are refused. Without it a turn lasts for as long as clients
 * ask: the runtime goes on reading while a thousand connections are ready, and commits, timers and messages
 * of other threads wait for seconds.
 */

export interface TurnstileOptions {
  /** Few enough that a turn takes milliseconds, and enough for a good group of writes. */
  readonly passedAtOnce: number;
  /** Those who come when so many wait are refused. */
  readonly waitingMax: number;
  /** Who waited longer is refused too, which is quick, so that others are answered in time. */
  readonly patienceMs: number;
}

export const turnstileDefaults: TurnstileOptions = {
  passedAtOnce: 128,
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
  #passed = 0;

  constructor(options = turnstileDefaults) {
    this.#options = options;
  }

  /** Absent: it may pass at once. Else it is told when its turn has come, and whether it may. */
  enter(sinceMs: number): Promise<boolean> | undefined {
    const { passedAtOnce } = this.#options;
    if (this.#passed < passedAtOnce) {
      this.#passed++;
      // Not in every turn, because that takes time: it does no harm that several turns make one.
      if (this.#passed === passedAtOnce) setImmediate(() => this.#turn());
      return undefined;
    }
    return new Promise((enter) => this.#waiting.push({ sinceMs, enter }));
  }

  #turn(): void {
    const { passedAtOnce, waitingMax, patienceMs } = this.#options;
    const oldestMs = performance.now() - patienceMs;
    const inTime = this.#waiting.findIndex(({ sinceMs }) => sinceMs >= oldestMs);
    const late = this.#waiting.splice(0, inTime < 0 ? this.#waiting.length : inTime);
    const surplus = this.#waiting.splice(waitingMax);
    const passing = this.#waiting.splice(0, passedAtOnce);
    this.#passed = passing.length;
    for (const { enter } of late) enter(false);
    for (const { enter } of surplus) enter(false);
    for (const { enter } of passing) enter(true);
    if (this.#passed === passedAtOnce) setImmediate(() => this.#turn());
  }
}
