/**
 * Preloaded into the service: on SIGUSR2 every thread collects its garbage, and the bytes that all
 * heaps still hold go to standard error. What grows there is a leak; what grows elsewhere may be
 * garbage that was not collected yet.
 */
import { heapStats } from "bun:jsc";

const requests = new BroadcastChannel("collector: requests");
const results = new BroadcastChannel("collector: results");

function collect(): number {
  Bun.gc(true);
  return heapStats().heapSize;
}

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
      if (sizes.push(data) < threads) return;
      process.stderr.write(`heap ${sizes.reduce((sum, size) => sum + size)}\n`);
    };
    requests.postMessage("collect");
  });
}

if (Bun.isMainThread) collectInAll();
else requests.onmessage = () => results.postMessage(collect());
