/** The main thread's end of the worker: sends it one request at a time and waits for the reply. */
import { type ErrorCode, PlantStoreError } from "../../domain/errors.ts";
import type { Outcome, TokenUse, Write } from "../../domain/storage.ts";
import { packWrites, unpackOutcomes } from "./wire.ts";

export type WorkerRequest =
  | { readonly kind: "open"; readonly path: string }
  | { readonly kind: "apply"; readonly writes: string }
  | { readonly kind: "forget-keys"; readonly nowMs: number }
  | { readonly kind: "note-token-uses"; readonly uses: readonly TokenUse[] }
  | { readonly kind: "close" };

export type Reply =
  | { readonly result: unknown }
  | {
      readonly code: ErrorCode | undefined;
      readonly message: string;
      readonly cause: string | undefined;
    };

interface Waiter {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const closeMs = 2_000;

export class WriteThread {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url).href);
  /** The worker answers in the order of the requests, so the oldest waiter is always meant. */
  readonly #waiting: Waiter[] = [];
  #failure: Error | undefined;
  #isClosed = false;

  constructor(path: string) {
    this.#worker.onmessage = (event: MessageEvent<Reply>) => this.#settle(event.data);
    this.#worker.onerror = (event) => this.#fail(event.message);
    this.#worker.addEventListener("close", () => {
      if (!this.#isClosed) this.#fail("The worker has ended.");
    });
    this.#request({ kind: "open", path }).catch((error) => {
      this.#failure = error;
    });
  }

  async apply(writes: readonly Write[]): Promise<readonly Outcome[]> {
    const outcomes = await this.#request({ kind: "apply", writes: packWrites(writes) });
    return unpackOutcomes(outcomes as string);
  }

  forgetKeys(nowMs: number): Promise<boolean> {
    return this.#request({ kind: "forget-keys", nowMs }) as Promise<boolean>;
  }

  async noteTokenUses(uses: readonly TokenUse[]): Promise<void> {
    await this.#request({ kind: "note-token-uses", uses });
  }

  /** Fails with `unavailable` if the worker has broken down. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  /** A worker that does not answer any more is not waited for. */
  async close(): Promise<void> {
    const closing = this.#request({ kind: "close" }).catch(() => {});
    await Promise.race([closing, Bun.sleep(closeMs)]);
    this.#isClosed = true;
    this.#worker.terminate();
  }

  #request(request: WorkerRequest): Promise<unknown> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(request);
    });
  }

  #settle(reply: Reply): void {
    const waiter = this.#waiting.shift();
    if (!waiter) return;
    if ("result" in reply) waiter.resolve(reply.result);
    else if (reply.code === undefined) waiter.reject(new Error(reply.message));
    else waiter.reject(new PlantStoreError(reply.code, reply.message, { cause: reply.cause }));
  }

  /** The worker itself broke down: everything that waits, and all that comes, is refused. */
  #fail(message: string): void {
    this.#failure = new PlantStoreError("unavailable", "The storage cannot take writes.", {
      cause: message,
    });
    for (const waiter of this.#waiting.splice(0)) waiter.reject(this.#failure);
  }
}
