/**
 * Sends reads that wait at the same time as one statement. The statement starts after all of them,
 * so each read sees everything that was acknowledged before it.
 */
import type { TransactionRunner } from "./transaction.ts";

/** Bounds how long the rows of one statement hold up the event loop. */
const groupReadsMax = 64;
/** While the rows of one statement are parsed, the server works on the next. */
const statementsMax = 2;

interface Waiter<Key, Result> {
  readonly key: Key;
  readonly dueAtMs: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Returns one result for each key, in their order, or fails for all of them. */
type Send<Key, Result> = (keys: readonly Key[], dueAtMs: number) => Promise<readonly Result[]>;

export class ReadGroup<Key, Result> {
  readonly #runner: TransactionRunner;
  readonly #send: Send<Key, Result>;
  #waiting: Waiter<Key, Result>[] = [];
  #statements = 0;
  #isScheduled = false;

  constructor(runner: TransactionRunner, send: Send<Key, Result>) {
    this.#runner = runner;
    this.#send = send;
  }

  read(key: Key): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, dueAtMs: this.#runner.dueAtMs(), resolve, reject });
      this.#schedule();
    });
  }

  /** At the end of this tick, so that all requests that it brings share a statement. */
  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0 || this.#statements >= statementsMax) {
      return;
    }
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendGroup(this.#waiting.splice(0, groupReadsMax));
      this.#schedule();
    });
  }

  async #sendGroup(group: readonly Waiter<Key, Result>[]): Promise<void> {
    this.#statements++;
    try {
      // The first has waited longest, so all of them end in time.
      const [{ dueAtMs } = { dueAtMs: 0 }] = group;
      const keys = group.map(({ key }) => key);
      const results = await this.#send(keys, dueAtMs);
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    this.#statements--;
    this.#schedule();
  }
}
