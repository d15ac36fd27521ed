/**
 * Whose turn it is on this thread's event loop:
 *
 *     a request arrives or goes on ──▶ time left, and nobody waits? ──▶ it runs now
 *                                           │ no
 *                                           ▼
 *                                 a queue for each garden ──▶ 10 ms of slices at the end
 *                                                             of each tick, garden by garden
 *
 * A slice is a request's start, the rest of it once its body has arrived, or the next chunk of a
 * long response. Each slice runs to its end, with everything it does in microtasks, before the
 * scheduler looks at the clock again. So no caller fills a tick, whatever their requests cost.
 */
import { drainMicrotasks } from "bun:jsc";
import { FairQueue } from "./fair-queue.ts";

/**
 * Slices run for up to this long as requests arrive, and again at the end of the tick. Then
 * sockets, commits and timers get their turn.
 */
const tickMsMax = 10;

/** If a tick begins this much later than it should, the whole process stood still. */
const stallMs = 100;

type Resume = (isLate: boolean) => void;

export class Scheduler {
  readonly #waiting = new FairQueue<Resume>(() => this.now() - this.#stalledMs);
  #ending: (() => void)[] = [];
  /**
   * How long the process has stood still. Nobody is to blame for that time, so it makes no request
   * late.
   */
  #stalledMs = 0;
  #isScheduled = false;
  #scheduledAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * Whether a slice may run now, without waiting for its turn. Starts the next window of time if
   * the last one is over: a look at the clock is cheaper than an immediate for each tick.
   */
  mayRun(nowMs = this.now()): boolean {
    if (!this.#isScheduled && nowMs - this.#scheduledAtMs >= tickMsMax) this.#schedule(nowMs);
    return this.#waiting.length === 0 && nowMs - this.#scheduledAtMs < tickMsMax;
  }

  /**
   * Resolves when it's this garden's turn. The result says whether the slice has waited longer than
   * a request may. Work that has begun, such as a long list, ignores that and goes on.
   */
  turn(garden: string): Promise<boolean> {
    if (!this.#isScheduled) this.#schedule(this.now());
    return new Promise((resolve) => this.#waiting.push(garden, resolve));
  }

  /**
   * Resolves at the end of this tick, or of a later one if thousands wait. Only for responses that
   * are ready: whatever waits here must be quick.
   */
  endOfTick(): Promise<void> {
    if (!this.#isScheduled) this.#schedule(this.now());
    return new Promise((resolve) => this.#ending.push(resolve));
  }

  #schedule(nowMs: number): void {
    this.#isScheduled = true;
    this.#scheduledAtMs = nowMs;
    setImmediate(this.#tick);
  }

  readonly #tick = () => {
    this.#isScheduled = false;
    const delayMs = this.now() - this.#scheduledAtMs;
    if (delayMs > stallMs) this.#stalledMs += delayMs;
    let ended = 0;
    this.#runSlices(() => this.#ending[ended++]);
    this.#ending.splice(0, ended);
    this.#runSlices(() => {
      const next = this.#waiting.shift();
      return next && (() => next.item(this.#waiting.isLate(next)));
    });
    const isLeft = this.#waiting.length > 0 || this.#ending.length > 0;
    if (isLeft && !this.#isScheduled) this.#schedule(this.now());
  };

  /**
   * Runs slices until none is left or their time is over. They run one by one: if thousands of
   * responses overtake their requests' bodies and settle together, the runtime recurses until the
   * stack overflows.
   */
  #runSlices(takeNext: () => (() => void) | undefined): void {
    const startMs = this.now();
    while (this.now() - startMs < tickMsMax) {
      const slice = takeNext();
      if (!slice) return;
      slice();
      drainMicrotasks();
    }
  }
}
