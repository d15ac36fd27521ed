/**
 * The main thread's end of a thread that listens beside it: starts it, passes on its log, stops it.
 */

import { deadline } from "../async/deadline.ts";
import type { Log, LogFormat, LogLevel } from "../log.ts";
import type { StorageShare } from "../storage/storage.ts";
import { drainMs, type ListenerConfig } from "./listener.ts";

const stopMs = drainMs + 2_000;

export type ToThread =
  | {
      readonly kind: "open";
      readonly config: ListenerConfig;
      readonly share: StorageShare["state"];
      readonly logFormat: LogFormat;
      readonly logLevel: LogLevel;
    }
  | { readonly kind: "stop" };

export type FromThread =
  /** It could not open, or cannot go on. */
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "log"; readonly lines: string }
  | { readonly kind: "stopped" };

interface ThreadOptions {
  readonly config: ListenerConfig;
  readonly share: StorageShare;
  readonly log: Log;
  /** A thread that breaks down takes its connections with it, so the process can't just go on. */
  readonly onFailure: (message: string) => void;
}

export class ListenerThread {
  readonly #worker = new Worker(`${import.meta.dir}/thread.ts`);
  readonly #stopped = Promise.withResolvers<void>();
  #isStopping = false;

  constructor(options: ThreadOptions) {
    const { config, share, log, onFailure } = options;
    this.#worker.onerror = (event) => onFailure(event.message);
    this.#worker.addEventListener("close", () => {
      if (!this.#isStopping) onFailure("it has ended");
    });
    this.#worker.onmessage = ({ data: message }: MessageEvent<FromThread>) => {
      switch (message.kind) {
        case "log":
          return log.pass(message.lines);
        case "failed":
          return onFailure(message.message);
        case "stopped":
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

  /** Resolves once it has drained, or after a while if it doesn't respond. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#worker.postMessage({ kind: "stop" } satisfies ToThread);
    await deadline(this.#stopped.promise, stopMs, () => {});
    this.#worker.terminate();
  }
}
