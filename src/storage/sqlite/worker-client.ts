/** A thread's connection to the worker: sends it requests and waits for the replies. */

import { type ErrorCode, PlantStoreError } from "../../domain/errors.ts";
import type { Outcome, Write } from "../../domain/ports.ts";
import { deadline } from "../../shared/promises.ts";
import { unknownOutcome } from "../failures.ts";
import {
  type Contents,
  closeMs,
  type OpenOptions,
  type StorageSizes,
  type WriterOptions,
} from "../storage.ts";
import { GardenVersions } from "./versions.ts";
import type { Writer } from "./writer.ts";

/** The store that the worker writes to. */
interface StoreFile {
  /** With all links resolved. */
  readonly path: string;
  /** Identifies the file and its WAL files: others may have their names by now. */
  readonly files: string;
}

/** What the worker does besides `apply`. */
export interface WorkerMethods extends Omit<Writer, "apply"> {
  /** Fails with `unavailable` if the file was removed, replaced or emptied. */
  checkStillThere(): void;
  measure(): StorageSizes;
  /** Copies a store to an empty file, as it is at one moment. */
  vacuumInto(source: string, target: string): void;
  /** Fails with `unavailable` unless the file is a store and whole. */
  checkFile(file: string): Contents;
}

type Method = keyof WorkerMethods;

export type WorkerRequest =
  | {
      readonly kind: "open";
      readonly store: StoreFile;
      readonly options: WriterOptions;
      readonly versions: SharedArrayBuffer;
    }
  | { readonly kind: "join"; readonly port: MessagePort }
  | { readonly kind: "apply"; readonly writes: string }
  | { readonly kind: "call"; readonly method: Method; readonly values: readonly unknown[] }
  | { readonly kind: "close" };

export type WorkerReply =
  | { readonly result: unknown }
  | {
      readonly code: ErrorCode | undefined;
      readonly message: string;
      readonly cause: string | undefined;
    };

/** What another thread needs to join. The port must be transferred to it. */
export interface WorkerShare {
  readonly port: MessagePort;
  /** Counts the changes of gardens; a change is counted before it is acknowledged. */
  readonly versions: SharedArrayBuffer;
}

/**
 * Writes and outcomes cross as text: a string isn't cloned. 48 writes and their outcomes take 39 µs
 * this way, and 82 µs as objects. JSON has no bigint, so an id is sent as text.
 */
export function pack(items: readonly (Write | Outcome)[]): string {
  const packed = items.map((item) => {
    const { id } = item as { id?: bigint };
    return id === undefined ? item : { ...item, id: id.toString() };
  });
  return JSON.stringify(packed);
}

/** Changes the items in place: copying them would take longer than parsing them. */
export function unpack<Item extends Write | Outcome>(text: string): Item[] {
  const items: { id?: string | bigint }[] = JSON.parse(text);
  for (const item of items) if (item.id !== undefined) item.id = BigInt(item.id);
  return items as Item[];
}

interface PendingRequest {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class WorkerClient {
  readonly #port: Worker | MessagePort;
  readonly versions: GardenVersions;
  readonly #onFailure: ((message: string) => void) | undefined;
  /** The worker replies in the order of the requests, so a reply is for the oldest of these. */
  readonly #waiting: PendingRequest[] = [];
  #failure: Error | undefined;
  #isClosed = false;

  private constructor(
    port: Worker | MessagePort,
    versions: GardenVersions,
    onFailure?: (message: string) => void,
  ) {
    this.#port = port;
    this.versions = versions;
    this.#onFailure = onFailure;
    port.onmessage = (event: MessageEvent<WorkerReply>) => this.#settle(event.data);
    port.addEventListener("close", () => {
      if (!this.#isClosed) this.#fail("The worker has ended.");
    });
  }

  /** Starts the worker, to write to a store, if any; `onFailure` is called when it breaks down. */
  static start(
    store?: StoreFile,
    { plantsMax, withoutEvents, onFailure }: WriterOptions & Pick<OpenOptions, "onFailure"> = {},
  ): WorkerClient {
    const worker = new Worker(`${import.meta.dir}/worker.ts`);
    const versions = new GardenVersions();
    const client = new WorkerClient(worker, versions, onFailure);
    worker.onerror = (event) => client.#fail(event.message);
    if (store === undefined) return client;
    // If this fails, the worker connects again at the first write.
    const options = { plantsMax, withoutEvents };
    client.#request({ kind: "open", store, options, versions: versions.memory }).catch(() => {});
    return client;
  }

  /** Joins the worker that another thread of this process has started. */
  static join({ port, versions }: WorkerShare): WorkerClient {
    return new WorkerClient(port, new GardenVersions(versions));
  }

  share(): WorkerShare {
    const { port1, port2 } = new MessageChannel();
    this.#port.postMessage({ kind: "join", port: port1 } satisfies WorkerRequest, [port1]);
    return { port: port2, versions: this.versions.memory };
  }

  async apply(writes: readonly Write[]): Promise<readonly Outcome[]> {
    const outcomes = await this.#request({ kind: "apply", writes: pack(writes) });
    return unpack<Outcome>(outcomes as string);
  }

  call<Name extends Method>(
    method: Name,
    ...values: Parameters<WorkerMethods[Name]>
  ): Promise<ReturnType<WorkerMethods[Name]>> {
    const result = this.#request({ kind: "call", method, values });
    return result as Promise<ReturnType<WorkerMethods[Name]>>;
  }

  /** Ends the worker at once, even in the middle of its work. */
  terminate(): void {
    this.#isClosed = true;
    if (this.#port instanceof Worker) this.#port.terminate();
  }

  /** The thread that started the worker ends it, without waiting if it no longer replies. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (!(this.#port instanceof Worker)) return this.#port.close();
    const closing = this.#request({ kind: "close" }).catch(() => {});
    await deadline(closing, closeMs, () => {});
    this.#port.terminate();
  }

  #request(request: WorkerRequest): Promise<unknown> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#port.postMessage(request);
      // After sending: if that fails, every later reply would go to the wrong request.
      this.#waiting.push({ resolve, reject });
    });
  }

  #settle(reply: WorkerReply): void {
    const request = this.#waiting.shift();
    if (!request) return;
    if ("result" in reply) request.resolve(reply.result);
    else if (reply.code === undefined) request.reject(new Error(reply.message));
    else request.reject(new PlantStoreError(reply.code, reply.message, { cause: reply.cause }));
  }

  /**
   * The worker broke down: fails every waiting request and all later ones. A waiting write may
   * have been committed.
   */
  #fail(message: string): void {
    const cause = { cause: message };
    this.#failure = new PlantStoreError("unavailable", "The storage cannot take writes.", cause);
    for (const request of this.#waiting.splice(0)) request.reject(unknownOutcome(message));
    this.#onFailure?.(message);
  }
}
