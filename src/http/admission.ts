/**
 * The one place that refuses when there is too much: requests started in a tick of the event loop,
 * work in flight, and bytes held for clients. What can't start now waits until its deadline, then
 * fails with `overloaded`. All of it is shared out by user, so that nobody can take everything.
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
  /** Turns in a tick, of about a millisecond each: see `turn`. */
  turnsMax: 4,
  waitingMax: 16_384,
  /** How long a request may wait, all its waits together. */
  waitMs: 500,
  /** Reads and writes that the storage works on at the same time, each. */
  inFlightMax: 1_024,
  /** Long lists that are being made. One whose client has yet to read its last chunk is not. */
  listsMax: 16,
  /** What long bodies, and the results of bulk requests, may take until their response is sent. */
  heldBytesMax: 16 * 1024 * 1024,
};

export type AdmissionOptions = Readonly<typeof admissionDefaults>;

export type PermitKind = "read" | "write" | "list";

interface Waiter {
  readonly deadlineMs: number;
  readonly resume: (isAdmitted: boolean) => void;
}

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #permits: Readonly<Record<PermitKind, Semaphore>>;
  readonly #heldBytes: Shares;
  /** Requests that wait for a later tick, the oldest first. */
  #waiting: Waiter[] = [];
  readonly #turns = new FairQueue<() => void>();
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
    this.#heldBytes = new Shares(options.heldBytesMax);
  }

  /** How long a request that arrives now may wait, as a point in time. */
  deadline(nowMs = performance.now()): number {
    return nowMs + this.#options.waitMs;
  }

  /** Runs a request now or in a later tick. `isAdmitted` is false if it waited too long. */
  start<Result>(
    deadlineMs: number,
    run: (isAdmitted: boolean) => Result | Promise<Result>,
  ): Result | Promise<Result> {
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
        deadlineMs,
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

  /**
   * Resolves when this user may go on with long work, for about a millisecond: a chunk of a long
   * list, a few lines of a bulk request, the validation of a long body. It is never refused.
   */
  turn(user: string): Promise<void> {
    if (!this.#isTicking) this.#schedule(performance.now());
    return new Promise((resolve) => this.#turns.push(user, resolve));
  }

  /** Makes the next chunk of a long list that has begun, when it is its turn. */
  nextChunk<Result>(user: string, make: () => Promise<Result>): Promise<Result> {
    const turn = this.turn(user);
    return this.#permits.list.begin(user, () => turn.then(make));
  }

  /** Runs work of the storage, now or later. Fails with `overloaded` after the deadline. */
  withPermit<Result>(
    kind: PermitKind,
    user: string,
    deadlineMs: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    return this.#permits[kind].withPermit(user, deadlineMs, work);
  }

  /** What a request holds in memory. The caller disposes of it. */
  hold(user: string): Holding {
    return new Holding(this.#heldBytes, user);
  }

  #schedule(nowMs: number): void {
    this.#isTicking = true;
    this.#tickStartMs = nowMs;
    this.#started = 0;
    setImmediate(this.#tick);
  }

  readonly #tick = () => {
    const { tickMs, crowdedTickMs, turnsMax, waitingMax } = this.#options;
    const nowMs = performance.now();
    const readMs = nowMs - this.#tickStartMs;
    this.#isTicking = false;
    if (this.#waiting.length > 0) {
      const firstInTime = this.#waiting.findIndex(({ deadlineMs }) => nowMs <= deadlineMs);
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
    for (let count = 0; count < turnsMax; count++) this.#turns.shift()?.();
    if (this.#waiting.length + this.#turns.length > 0) this.#schedule(performance.now());
  };
}

/** Bytes that are held for one request, until it is disposed of. */
export class Holding implements Disposable {
  readonly #shares: Shares;
  readonly #user: string;
  #bytes = 0;
  #isOver = false;

  constructor(shares: Shares, user: string) {
    this.#shares = shares;
    this.#user = user;
  }

  /** Fails with `overloaded` if the user holds too much already. */
  add(bytes: number): void {
    if (this.#isOver || !this.#shares.take(this.#user, bytes)) throw overloaded;
    this.#bytes += bytes;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    if (this.#bytes > 0) this.#shares.add(this.#user, -this.#bytes);
    this.#bytes = 0;
  }
}

/**
 * Shares an amount among users. Each may have as much as they leave free: one user gets half, two
 * get a third each, and there is always some left for the next.
 */
class Shares {
  readonly #max: number;
  readonly #byUser = new Map<string, number>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  take(user: string, amount: number): boolean {
    const own = (this.#byUser.get(user) ?? 0) + amount;
    if (own > this.#max - this.#total) return false;
    this.add(user, amount);
    return true;
  }

  /** Even beyond what the user may have. A negative amount is given back. */
  add(user: string, amount: number): void {
    const own = (this.#byUser.get(user) ?? 0) + amount;
    this.#total += amount;
    if (own === 0) this.#byUser.delete(user);
    else this.#byUser.set(user, own);
  }
}

/** Bounds the work in flight; the rest waits. */
class Semaphore {
  readonly #options: AdmissionOptions;
  readonly #shares: Shares;
  readonly #waiting = new FairQueue<Waiter>();
  #timer: Timer | undefined;

  constructor(options: AdmissionOptions, inFlightMax: number) {
    this.#options = options;
    this.#shares = new Shares(inFlightMax);
  }

  withPermit<Result>(
    user: string,
    deadlineMs: number,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#shares.take(user, 1)) return this.#run(user, work);
    if (this.#waiting.length >= this.#options.waitingMax) return Promise.reject(overloaded);
    this.#timer ??= setInterval(() => this.#refuseLate(), this.#options.waitMs / 4);
    return new Promise((resolve, reject) => {
      this.#waiting.push(user, {
        deadlineMs,
        resume: (isAdmitted) => (isAdmitted ? resolve(this.#run(user, work)) : reject(overloaded)),
      });
    });
  }

  /** Begins the work even when the limit is reached. */
  begin<Result>(user: string, work: () => Promise<Result>): Promise<Result> {
    this.#shares.add(user, 1);
    return this.#run(user, work);
  }

  #run<Result>(user: string, work: () => Promise<Result>): Promise<Result> {
    const end = () => {
      this.#shares.add(user, -1);
      this.#waiting.shift((next) => this.#shares.take(next, 1))?.resume(true);
    };
    const running = work();
    running.then(end, end);
    return running;
  }

  #refuseLate(): void {
    const nowMs = performance.now();
    for (const { resume } of this.#waiting.removeWhile(({ deadlineMs }) => deadlineMs < nowMs)) {
      resume(false);
    }
    if (this.#waiting.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** A queue for each user. The users take turns. */
class FairQueue<Item> {
  /** By user, the one whose turn is next first. */
  readonly #queues = new Map<string, Item[]>();
  length = 0;

  push(user: string, item: Item): void {
    this.length++;
    const queue = this.#queues.get(user);
    if (queue) queue.push(item);
    else this.#queues.set(user, [item]);
  }

  /** Removes the next item of the first user that may have their turn. */
  shift(mayHaveTurn: (user: string) => boolean = () => true): Item | undefined {
    for (const [user, queue] of this.#queues) {
      if (!mayHaveTurn(user)) continue;
      this.length--;
      const item = queue.shift();
      this.#queues.delete(user);
      if (queue.length > 0) this.#queues.set(user, queue);
      return item;
    }
    return undefined;
  }

  /** Removes items from the head of each queue while the condition holds. */
  removeWhile(condition: (item: Item) => boolean): Item[] {
    const removed: Item[] = [];
    for (const [user, queue] of this.#queues) {
      const end = queue.findIndex((item) => !condition(item));
      removed.push(...queue.splice(0, end < 0 ? queue.length : end));
      if (queue.length === 0) this.#queues.delete(user);
    }
    this.length -= removed.length;
    return removed;
  }
}
