/// <reference lib="webworker" />
/** The program of every thread but the first: a listener that the first one starts and stops. */

import { createLog, type Log, type LogFormat, type LogLevel } from "../log.ts";
import type { StorageShare } from "../storage/storage.ts";
import { type Listener, type ListenerConfig, openListener } from "./listener.ts";

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
  /** The first thread writes the log. */
  | { readonly kind: "log"; readonly lines: string }
  | { readonly kind: "stopped" };

declare const self: Worker;

const post = (message: FromThread) => self.postMessage(message);

let log: Log | undefined;
let opening: Promise<Listener> | undefined;

self.onmessage = async ({ data: message }: MessageEvent<ToThread>) => {
  switch (message.kind) {
    case "open": {
      const { config, share, logFormat, logLevel } = message;
      log = createLog(logFormat, (lines) => post({ kind: "log", lines }), logLevel);
      opening = openListener(config, log, { share });
      return opening.catch((error) => post({ kind: "failed", message: error.message }));
    }
    case "stop": {
      const listener = await opening?.catch(() => undefined);
      await listener?.drain();
      await listener?.storage.close();
      log?.flush();
      return post({ kind: "stopped" });
    }
  }
};
