/**
 * The main thread's end of a thread that listens beside it: starts it, reads its counts, stops it.
 */
import type { StorageShare } from "../domain/storage.ts";
import type { Log, LogFormat, LogLevel } from "../log.ts";
import type { Counts } from "../metrics.ts";
import type { Certificate } from "./certificate.ts";
import { drainMs, type ListenerConfig } from "./listener.ts";

const stopMs = drainMs + 2_000;
/** A thread that is too busy to report its counts is shown with the last ones. */
const countsMs = 1_000;

export type ToThread =
  | {
      readonly kind: "open";
      readonly config: ListenerConfig;
      readonly share: StorageShare["state"];
      readonly logFormat: LogFormat;
      readonly logLevel: LogLevel;
    }
  | { readonly kind: "certificate"; readonly certificate: Certificate }
  | { readonly kind: "get-counts" }
  /** Without a text if there is none to be had. */
  | { readonly kind: "metrics"; readonly text: string | undefined }
  | { readonly kind: "stop" };

export type FromThread =
  /** It could not open, or cannot go on. */
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "log"; readonly lines: string }
  | { readonly kind: "counts"; readonly counts: Counts }
  | { readonly kind: "get-metrics" }
  | { readonly kind: "stopped"; readonly counts: Counts };

export interface ThreadOptions {
  readonly config: ListenerConfig;
  readonly share: StorageShare;
  readonly log: Log;
  /** The metrics of the whole process. */
  readonly renderMetrics: () => Promise<string>;
  /**
   * A thread that breaks down takes its connections with it, so the process must not go on as if
   * well.
   */
  readonly onFailure: (message: string) => void;
}

export class ListenerThread {
  readonly #worker = new Worker(`${import.meta.dir}/thread.ts`);
  readonly #waitingForCounts: ((counts: Counts) => void)[] = [];
  readonly #stopped = Promise.withResolvers<void>();
  #lastCounts: Counts | undefined;
  #isStopping = false;
  #isStopped = false;

  constructor(options: ThreadOptions) {
    const { config, share, log, renderMetrics, onFailure } = options;
    this.#worker.onerror = (event) => onFailure(event.message);
    this.#worker.addEventListener("close", () => {
      if (!this.#isStopping) onFailure("it has ended");
    });
    this.#worker.onmessage = async ({ data: message }: MessageEvent<FromThread>) => {
      switch (message.kind) {
        case "log":
          return log.pass(message.lines);
        case "failed":
          return onFailure(message.message);
        case "counts":
          this.#lastCounts = message.counts;
          return this.#waitingForCounts.shift()?.(message.counts);
        case "get-metrics":
          // Whatever happens: the thread waits for it.
          return this.#post({
            kind: "metrics",
            text: await renderMetrics().catch(() => undefined),
          });
        case "stopped":
          this.#lastCounts = message.counts;
          this.#isStopped = true;
          for (const resolve of this.#waitingForCounts.splice(0)) resolve(message.counts);
          return this.#stopped.resolve();
      }
    };
    const opening: ToThread = {
      kind: "open",
      config,
      share: share.state,
      logFormat: log.format,
      logLevel: log.level,
    };
    this.#worker.postMessage(opening, [...share.transfer]);
  }

  /** Absent if it has never reported any. */
  async readCounts(): Promise<Counts | undefined> {
    if (this.#isStopped) return this.#lastCounts;
    return new Promise((resolve) => {
      // Not by Promise.race with #stopped, which would hold on to every call until the thread ends.
      const late = setTimeout(() => resolve(this.#lastCounts), countsMs);
      this.#waitingForCounts.push((counts) => {
        clearTimeout(late);
        resolve(counts);
      });
      this.#post({ kind: "get-counts" });
    });
  }

  useCertificate(certificate: Certificate): void {
    this.#post({ kind: "certificate", certificate });
  }

  /** Resolves once it has drained, or after a while if it doesn't respond. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#post({ kind: "stop" });
    await Promise.race([this.#stopped.promise, Bun.sleep(stopMs)]);
    this.#worker.terminate();
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}
