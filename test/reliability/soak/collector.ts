/**
 * Preloaded into the service: on SIGUSR2 every thread collects its garbage, and the bytes that all
 * heaps still hold are written to a file. What grows there is a leak; what grows elsewhere may be
 * garbage that was not collected yet.
 */
import { heapStats } from "bun:jsc";
import { renameSync, writeFileSync } from "node:fs";

const requests = new BroadcastChannel("collector: requests");
const results = new BroadcastChannel("collector: results");
if (Bun.isMainThread) collectInAll();
else requests.onmessage = () => results.postMessage(collect());

function collectInAll(): void {
  let threads = 1;
  const PlainWorker = globalThis.Worker;
  globalThis.Worker = class extends PlainWorker {
    constructor(url: string | URL, options: WorkerOptions = {}) {
      super(url, { ...options, preload: [import.meta.path] });
      threads++;
    }
  };
  process.on("SIGUSR2", () => {
    const sizes = [collect()];
    results.onmessage = ({ data }: MessageEvent<number>) => {
      sizes.push(data);
      if (sizes.length === threads) report(sizes.reduce((sum, size) => sum + size));
    };
    requests.postMessage("collect");
  });
}

function collect(): number {
  Bun.gc(true);
  return heapStats().heapSize;
}

/** Renamed into place, so that nobody reads half of it. */
function report(bytes: number): void {
  const file = process.env.COLLECTOR_FILE ?? "";
  writeFileSync(`${file}.new`, String(bytes));
  renameSync(`${file}.new`, file);
}
