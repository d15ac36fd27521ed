/**
 * Loaded into the program before its own code: when it is asked, every thread collects its garbage
 * and tells what it still holds. What grows there is kept by something. What grows elsewhere may be
 * garbage that nobody has collected yet.
 */
import { heapStats } from "bun:jsc";
import process from "node:process";

/** Of all threads together. */
export interface Held {
  readonly objects: number;
  readonly heapMb: number;
}

const asking = new BroadcastChannel("collector: asking");
const telling = new BroadcastChannel("collector: telling");
if (Bun.isMainThread) collectInAll();
else asking.onmessage = () => telling.postMessage(collect());

function collectInAll(): void {
  let threads = 1;
  const Plain = globalThis.Worker;
  globalThis.Worker = class extends Plain {
    constructor(url: string | URL, options: WorkerOptions = {}) {
      super(url, { ...options, preload: [import.meta.path] });
      threads++;
    }
  };
  process.on("message", () => {
    const told = [collect()];
    telling.onmessage = ({ data }: MessageEvent<Held>) => {
      told.push(data);
      if (told.length === threads) process.send?.(addUp(told));
    };
    asking.postMessage("collect");
  });
}

function collect(): Held {
  Bun.gc(true);
  const { objectCount, heapSize } = heapStats();
  return { objects: objectCount, heapMb: heapSize / 2 ** 20 };
}

function addUp(all: readonly Held[]): Held {
  return {
    objects: all.reduce((sum, { objects }) => sum + objects, 0),
    heapMb: all.reduce((sum, { heapMb }) => sum + heapMb, 0),
  };
}
