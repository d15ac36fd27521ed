/// <reference lib="webworker" />
/** A listener in its own thread. It logs through the main thread. */

import { createLog, type Log } from "../log.ts";
import { Metrics } from "../metrics.ts";
import { openStorage } from "../storage/open.ts";
import type { Storage } from "../storage/storage.ts";
import { version } from "../version.ts";
import { type Listener, openListener } from "./listener.ts";
import type { FromThread, ToThread } from "./listener-thread.ts";

declare const self: Worker;

const post = (message: FromThread) => self.postMessage(message);

const metrics = new Metrics(version);
let log: Log | undefined;
let storage: Storage | undefined;
let opening: Promise<Listener> | undefined;

async function open(message: Extract<ToThread, { kind: "open" }>): Promise<Listener> {
  const { config, share, logFormat, logLevel } = message;
  log = createLog(logFormat, (lines) => post({ kind: "log", lines }), logLevel);
  const { database, limits, usage } = config;
  storage = await openStorage(database, {
    isServing: true,
    share,
    limits,
    onRead: (durationMs) => metrics.countRead(durationMs),
    plantsMax: usage.plantsMax,
    withoutEvents: config.events === "off",
  });
  return openListener(config, storage, log, metrics, false);
}

self.onmessage = async ({ data: message }: MessageEvent<ToThread>) => {
  switch (message.kind) {
    case "open":
      opening = open(message);
      return opening.catch((error) => post({ kind: "failed", message: error.message }));
    case "stop":
      await opening?.then(
        (listener) => listener.drain(),
        () => {},
      );
      await storage?.close();
      log?.flush();
      return post({ kind: "stopped" });
  }
};
