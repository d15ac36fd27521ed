/**
 * Sends requests that wait at the same time as one batch. A batch starts after all of its requests
 * have arrived, so a read sees everything that was acknowledged before it.
 */
import { deadline } from "../shared/promises.ts";
import { RefusingQueue } from "./fair-queue.ts";
import { endOfTick, gather } from "./ticks.ts";

/** Bounds how long the results of one batch hold up the event loop. */
const batchMax = 64;
/**
 * While a batch is under way, requests gather for the next one, so that batches are large. If a
 * batch takes longer than this, the next one starts anyway.
 */
const patienceMs = 20;

interface QueuedRequest<Key, Result> {
  readonly key: Key;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Returns one result for each key, in their order, or fails for all of them. */
type Send<Key, Result> = (keys: readonly Key[]) => Promise<readonly Result[]>;

export class Batcher<Key, Result> {
  readonly #waiting = new RefusingQueue<QueuedRequest<Key, Result>>();
  #isSending = false;

  constructor(private readonly send: Send<Key, Result>) {}

  /** Fails with `overloaded` if it waited too long for the garden's turn. */
  request(garden: string, key: Key): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(garden, { key, resolve, reject });
      if (!this.#isSending) this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    try {
      await endOfTick();
      while (this.#waiting.length > 0) {
        const batch = this.#takeBatch();
        if (batch.length === 0) break;
        const sent = this.#sendBatch(batch);
        if (this.#waiting.length >= batchMax) continue;
        await deadline(sent, patienceMs, () => {});
        if (batch.length > 1) await gather();
      }
    } finally {
      this.#isSending = false;
    }
  }

  #takeBatch(): QueuedRequest<Key, Result>[] {
    const batch: QueuedRequest<Key, Result>[] = [];
    while (batch.length < batchMax) {
      const next = this.#waiting.take();
      if (!next) break;
      batch.push(next);
    }
    return batch;
  }

  async #sendBatch(batch: readonly QueuedRequest<Key, Result>[]): Promise<void> {
    try {
      const results = await this.send(batch.map(({ key }) => key));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
