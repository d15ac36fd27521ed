/** The program, one of whose threads ends a moment after it has started: see threads.test.ts. */
export {};

const { DYING_THREAD: file = "", DYING_BY: how = "" } = process.env;
const afterMs = 300;

globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    const isDying = String(url).endsWith(`/${file}`);
    const preload = `data:text/javascript,setTimeout(()=>{throw new Error("died")},${afterMs})`;
    super(url, isDying && how === "an error" ? { ...options, preload: [preload] } : options);
    if (isDying && how === "its end") setTimeout(() => this.terminate(), afterMs);
  }
};

await import("../../src/main.ts");
