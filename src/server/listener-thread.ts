/**
 * The main thread's end of a thread that listens beside it: starts it, reads its report, stops it.
 */
import type { StorageShare } from "../domain/storage.ts";
import type { Log, LogFormat, LogLevel } from "../log.ts";
import type { Report } from "../metrics.ts";
import type { Certificate } from "./certificate.ts";
import { drainMs, type ListenerConfig } from "./listener.ts";

const stopMs = drainMs + 2_000;
/** A thread that is too busy to report is shown with its last report. */
const reportMs = 1_000;

export type ToThread =
  | {
      readonly kind: "open";
      readonly config: ListenerConfig;
      readonly share: StorageShare["state"];
      readonly logFormat: LogFormat;
      readonly logLevel: LogLevel;
    }
  | { readonly kind: "certificate"; readonly certificate: Certificate }
  | { readonly kind: "get-report" }
  /** Without a text if there is none to be had. */
  | { readonly kind: "metrics"; readonly text: string | undefined }
  | { readonly kind: "stop" };

export type FromThread =
  /** It could not open, or cannot go on. */
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "log"; readonly lines: string }
  | { readonly kind: "report"; readonly report: Report }
  | { readonly kind: "get-metrics" }
  | { readonly kind: "stopped"; readonly report: Report };

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
  readonly #waitingForReport: ((report: Report) => void)[] = [];
  readonly #stopped = Promise.withResolvers<void>();
  #lastReport: Report | undefined;
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
        case "report":
          this.#lastReport = message.report;
          return this.#waitingForReport.shift()?.(message.report);
        case "get-metrics":
          // Whatever happens: the thread waits for it.
          return this.#post({
            kind: "metrics",
            text: await renderMetrics().catch(() => undefined),
          });
        case "stopped":
          this.#lastReport = message.report;
          this.#isStopped = true;
          for (const resolve of this.#waitingForReport.splice(0)) resolve(message.report);
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
  async readReport(): Promise<Report | undefined> {
    if (this.#isStopped) return this.#lastReport;
    return new Promise((resolve) => {
      // Not by Promise.race with #stopped, which would hold on to every call until the thread ends.
      const late = setTimeout(() => resolve(this.#lastReport), reportMs);
      this.#waitingForReport.push((report) => {
        clearTimeout(late);
        resolve(report);
      });
      this.#post({ kind: "get-report" });
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
