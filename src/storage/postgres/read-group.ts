/**
 * Sends reads that wait at the same time as one statement. The statement starts after all of them,
 * so each read sees everything that was acknowledged before it.
 */
import { FairQueue, isLate } from "../../async/fair-queue.ts";
import { overloaded } from "../../domain/errors.ts";
import type { TransactionRunner } from "./transaction.ts";

/** Bounds how long the rows of one statement hold up the event loop. */
const groupReadsMax = 64;
/**
 * While a statement runs, reads gather for the next, so that groups are large. One that takes
 * longer than this no longer holds up the others.
 */
const patienceMs = 20;
/** Then as many ticks for the next reads of clients that just got a response. */
const gatheringTicks = 4;

interface Waiter<Key, Result> {
  readonly key: Key;
  readonly dueAtMs: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Returns one result for each key, in their order, or fails for all of them. */
type Send<Key, Result> = (keys: readonly Key[], dueAtMs: number) => Promise<readonly Result[]>;

export class ReadGroup<Key, Result> {
  readonly #runner: Pick<TransactionRunner, "dueAtMs">;
  readonly #send: Send<Key, Result>;
  readonly #waiting = new FairQueue<Waiter<Key, Result>>();
  #isSending = false;

  constructor(runner: Pick<TransactionRunner, "dueAtMs">, send: Send<Key, Result>) {
    this.#runner = runner;
    this.#send = send;
  }

  /** Fails with `overloaded` if it waited too long for the garden's turn. */
  read(garden: string, key: Key): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(garden, { key, dueAtMs: this.#runner.dueAtMs(), resolve, reject });
      if (!this.#isSending) this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    // At the end of this tick, so that all requests that it brings share a statement.
    await ticks(1);
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup();
      const sent = this.#sendGroup(group);
      if (this.#waiting.length >= groupReadsMax) continue;
      await Promise.race([sent, Bun.sleep(patienceMs)]);
      if (group.length > 1) await ticks(gatheringTicks);
    }
    this.#isSending = false;
  }

  #takeGroup(): Waiter<Key, Result>[] {
    const group: Waiter<Key, Result>[] = [];
    while (group.length < groupReadsMax) {
      const next = this.#waiting.shift();
      if (!next) break;
      if (isLate(next)) next.item.reject(overloaded);
      else group.push(next.item);
    }
    return group;
  }

  async #sendGroup(group: readonly Waiter<Key, Result>[]): Promise<void> {
    try {
      const dueAtMs = Math.min(...group.map((waiter) => waiter.dueAtMs));
      const keys = group.map(({ key }) => key);
      const results = await this.#send(keys, dueAtMs);
      for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }
}

async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) await new Promise((resolve) => setImmediate(resolve));
}
