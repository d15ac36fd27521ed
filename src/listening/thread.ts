/// <reference lib="webworker" />
/** A listener in a thread of its own. It hears from the main thread only; so does the outside of it. */
import type { Storage } from "../domain/storage.ts";
import { createLog, type Log } from "../log.ts";
import { Metrics } from "../metrics.ts";
import { openStorage } from "../storage/open.ts";
import { version } from "../version.ts";
import type { Certificate } from "./certificate.ts";
import { type Listener, openListener } from "./listener.ts";
import type { FromThread, ToThread } from "./listener-thread.ts";

declare const self: Worker;

const tell = (message: FromThread) => self.postMessage(message);

const metrics = new Metrics(version);
const waitingForMetrics: ((text: string) => void)[] = [];
let log: Log | undefined;
let storage: Storage | undefined;
const opened = Promise.withResolvers<Listener>();
let listener: Listener | undefined;

function renderAll(): Promise<string> {
  return new Promise((resolve) => {
    waitingForMetrics.push(resolve);
    tell({ kind: "metrics-wanted" });
  });
}

function useCertificate(opened: Listener, certificate: Certificate): void {
  try {
    opened.useCertificate(certificate);
  } catch (error) {
    log?.event("error", "certificate reload failed", { error });
  }
}

self.onmessage = async ({ data: message }: MessageEvent<ToThread>) => {
  switch (message.kind) {
    case "open": {
      const { config, joins, logFormat } = message;
      log = createLog(logFormat, (lines) => tell({ kind: "log", lines }));
      const { database, limits } = config;
      storage = await openStorage(database, {
        isServing: true,
        isOpenElsewhere: true,
        joins,
        limits,
      });
      listener = await openListener(config, storage, log, { metrics, render: renderAll });
      opened.resolve(listener);
      return tell({ kind: "opened" });
    }
    case "certificate":
      // It may come while this thread is still opening with the one before.
      return useCertificate(await opened.promise, message.certificate);
    case "counts-wanted":
      return tell({ kind: "counts", counts: metrics.counts });
    case "metrics":
      return waitingForMetrics.shift()?.(message.text);
    case "stop":
      await listener?.drain();
      await storage?.close();
      log?.flush();
      return tell({ kind: "stopped" });
  }
};
