/** The main thread's end of the threads that listen beside it: starts them, adds up what they count, stops them. */
import type { Log, LogFormat } from "../log.ts";
import type { Counts } from "../metrics.ts";
import type { Certificate } from "./certificate.ts";
import { drainMs, type ListenerConfig } from "./listener.ts";

const stopMs = drainMs + 2_000;

export type ToThread =
  | {
      readonly kind: "open";
      readonly config: ListenerConfig;
      readonly joins: MessagePort | undefined;
      readonly logFormat: LogFormat;
    }
  | { readonly kind: "certificate"; readonly certificate: Certificate }
  | { readonly kind: "counts-wanted" }
  | { readonly kind: "metrics"; readonly text: string }
  | { readonly kind: "stop" };

export type FromThread =
  | { readonly kind: "opened" }
  | { readonly kind: "log"; readonly lines: string }
  | { readonly kind: "counts"; readonly counts: Counts }
  | { readonly kind: "metrics-wanted" }
  | { readonly kind: "stopped" };

export interface ThreadOptions {
  readonly config: ListenerConfig;
  readonly joins: MessagePort | undefined;
  readonly log: Log;
  /** The metrics of the whole process, for whoever is asked. */
  readonly renderMetrics: () => Promise<string>;
  /** A thread that breaks down takes its connections with it, so the process must not go on as if well. */
  readonly onFailure: (message: string) => void;
}

export class ListenerThread {
  readonly #worker = new Worker(new URL("./thread.ts", import.meta.url).href);
  readonly #waitingForCounts: ((counts: Counts) => void)[] = [];
  readonly #stopped = Promise.withResolvers<void>();

  constructor(options: ThreadOptions) {
    const { config, joins, log, renderMetrics, onFailure } = options;
    this.#worker.onerror = (event) => onFailure(event.message);
    this.#worker.onmessage = async ({ data: message }: MessageEvent<FromThread>) => {
      switch (message.kind) {
        case "log":
          return log.pass(message.lines);
        case "counts":
          return this.#waitingForCounts.shift()?.(message.counts);
        case "metrics-wanted":
          return this.#tell({ kind: "metrics", text: await renderMetrics() });
        case "stopped":
          return this.#stopped.resolve();
      }
    };
    const opening: ToThread = { kind: "open", config, joins, logFormat: log.format };
    this.#worker.postMessage(opening, joins ? [joins] : []);
  }

  readCounts(): Promise<Counts> {
    return new Promise((resolve) => {
      this.#waitingForCounts.push(resolve);
      this.#tell({ kind: "counts-wanted" });
    });
  }

  useCertificate(certificate: Certificate): void {
    this.#tell({ kind: "certificate", certificate });
  }

  /** Resolves once it has drained. One that does not answer any more is not waited for. */
  async stop(): Promise<void> {
    this.#tell({ kind: "stop" });
    await Promise.race([this.#stopped.promise, Bun.sleep(stopMs)]);
    this.#worker.terminate();
  }

  #tell(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}
