/// <reference lib="webworker" />
/** The program of every thread but the first, which starts and stops it. */

import { createLog, type Log, type LogFormat, type LogLevel } from "../shared/log.ts";
import type { StorageShare } from "../storage/storage.ts";
import { openThread, type ServingThread, type ThreadConfig } from "./thread.ts";

export type ToThread =
  | {
      readonly kind: "open";
      readonly config: ThreadConfig;
      readonly share: StorageShare["state"];
      readonly logFormat: LogFormat;
      readonly logLevel: LogLevel;
    }
  | { readonly kind: "stop" };

export type FromThread =
  /** It could not open, or cannot go on. */
  | { readonly kind: "failed"; readonly message: string }
  /** The first thread writes the log. */
  | { readonly kind: "log"; readonly lines: string }
  | { readonly kind: "stopped" };

declare const self: Worker;

const post = (message: FromThread) => self.postMessage(message);

let log: Log | undefined;
let opening: Promise<ServingThread> | undefined;

self.onmessage = async ({ data: message }: MessageEvent<ToThread>) => {
  switch (message.kind) {
    case "open": {
      const { config, share, logFormat, logLevel } = message;
      log = createLog(logFormat, (lines) => post({ kind: "log", lines }), logLevel);
      opening = openThread(config, log, { share });
      return opening.catch((error) => post({ kind: "failed", message: error.message }));
    }
    case "stop": {
      const thread = await opening?.catch(() => undefined);
      await thread?.drain();
      await thread?.storage.close();
      log?.flush();
      return post({ kind: "stopped" });
    }
  }
};
