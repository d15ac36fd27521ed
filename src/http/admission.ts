/**
 * The queue of requests. It bounds how long one tick of the event loop spends on requests, and how
 * many reads, writes and long lists are in flight. What is beyond that waits, and what has waited
 * too long is refused with `overloaded`.
 */
import { overloaded } from "../domain/errors.ts";

export const admissionDefaults = {
  /**
   * How long a tick may start requests. Without a bound, a tick lasts as long as clients keep
   * sending: commits, timers and other threads' messages would wait for seconds.
   */
  tickMs: 25,
  /**
   * Started in any tick, however slow: the runtime closes a connection if it has pipelined requests
   * on it and one of them waits.
   */
  startedMin: 32,
  /** Under load a tick may run requests twice as long as it took to read them, up to this. */
  crowdedTickMs: 100,
  /** Chunks of long lists that are made in a tick. */
  chunksMax: 4,
  waitingMax: 16_384,
  waitMs: 500,
  /** Reads and writes that the storage works on at the same time, each. */
  inFlightMax: 1_024,
  /** Long lists that are being made. One whose client has yet to read its last chunk is not. */
  listsMax: 8,
};

export type AdmissionOptions = Readonly<typeof admissionDefaults>;

type PermitKind = "read" | "write" | "list";

interface Waiter {
  readonly sinceMs: number;
  readonly resume: (isAdmitted: boolean) => void;
}

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #permits: Readonly<Record<PermitKind, Semaphore>>;
  /** Requests that wait for a later tick, the oldest first. */
  #waiting: Waiter[] = [];
  #chunks: (() => void)[] = [];
  #isTicking = false;
  #tickStartMs = 0;
  #started = 0;

  constructor(options: AdmissionOptions = admissionDefaults) {
    this.#options = options;
    this.#permits = {
      read: new Semaphore(options, options.inFlightMax),
      write: new Semaphore(options, options.inFlightMax),
      list: new Semaphore(options, options.listsMax),
    };
  }

  /** Runs a request now or in a later tick. `isAdmitted` is false if it waited too long. */
  start<Result>(run: (isAdmitted: boolean) => Result | Promise<Result>): Result | Promise<Result> {
    const { tickMs, startedMin } = this.#options;
    const nowMs = performance.now();
    if (!this.#isTicking) this.#schedule(nowMs);
    const hasTime = this.#started < startedMin || nowMs - this.#tickStartMs < tickMs;
    if (hasTime && this.#waiting.length === 0) {
      this.#started++;
      return run(true);
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        sinceMs: nowMs,
        resume(isAdmitted) {
          try {
            resolve(run(isAdmitted));
          } catch (error) {
            reject(error);
          }
        },
      });
    });
  }

  /** Makes the next chunk of a list that has begun, when it is its turn. It is never refused. */
  nextChunk<Result>(make: () => Promise<Result>): Promise<Result> {
    if (!this.#isTicking) this.#schedule(performance.now());
    const turn = new Promise<void>((resolve) => this.#chunks.push(resolve));
    return this.#permits.list.begin(() => turn.then(make));
  }

  /** Runs work of the storage, now or later. Fails with `overloaded` if it waited too long. */
  withPermit<Result>(kind: PermitKind, work: () => Promise<Result>): Promise<Result> {
    return this.#permits[kind].withPermit(work);
  }

  #schedule(nowMs: number): void {
    this.#isTicking = true;
    this.#tickStartMs = nowMs;
    this.#started = 0;
    setImmediate(this.#tick);
  }

  readonly #tick = () => {
    const { tickMs, crowdedTickMs, chunksMax, waitingMax, waitMs } = this.#options;
    const nowMs = performance.now();
    const readMs = nowMs - this.#tickStartMs;
    this.#isTicking = false;
    if (this.#waiting.length > 0) {
      const firstInTime = this.#waiting.findIndex(({ sinceMs }) => nowMs - sinceMs <= waitMs);
      const late = this.#waiting.splice(0, firstInTime < 0 ? this.#waiting.length : firstInTime);
      late.push(...this.#waiting.splice(waitingMax));
      const endMs = nowMs + Math.min(Math.max(tickMs, 2 * readMs), crowdedTickMs);
      let done = 0;
      while (done < this.#waiting.length && performance.now() < endMs) {
        this.#waiting[done++]?.resume(true);
      }
      this.#waiting.splice(0, done);
      for (const { resume } of late) resume(false);
    }
    for (const resolve of this.#chunks.splice(0, chunksMax)) resolve();
    if (this.#waiting.length + this.#chunks.length > 0) this.#schedule(performance.now());
  };
}

/** Bounds the work in flight; the rest waits in line. */
class Semaphore {
  readonly #options: AdmissionOptions;
  readonly #inFlightMax: number;
  readonly #waiting: Waiter[] = [];
  #inFlight = 0;
  #timer: Timer | undefined;

  constructor(options: AdmissionOptions, inFlightMax: number) {
    this.#options = options;
    this.#inFlightMax = inFlightMax;
  }

  withPermit<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#inFlight < this.#inFlightMax) return this.begin(work);
    if (this.#waiting.length >= this.#options.waitingMax) return Promise.reject(overloaded);
    this.#timer ??= setInterval(() => this.#refuseLate(), this.#options.waitMs / 4);
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        sinceMs: performance.now(),
        resume: (isAdmitted) => (isAdmitted ? resolve(this.begin(work)) : reject(overloaded)),
      });
    });
  }

  /** Begins the work even if as much is in flight as may be. */
  begin<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#inFlight++;
    const running = work();
    running.then(this.#end, this.#end);
    return running;
  }

  readonly #end = () => {
    this.#inFlight--;
    if (this.#inFlight < this.#inFlightMax) this.#waiting.shift()?.resume(true);
  };

  #refuseLate(): void {
    const oldestMs = performance.now() - this.#options.waitMs;
    while ((this.#waiting[0]?.sinceMs ?? Number.POSITIVE_INFINITY) < oldestMs) {
      this.#waiting.shift()?.resume(false);
    }
    if (this.#waiting.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
