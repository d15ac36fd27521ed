/** The program, one of whose threads ends at SIGUSR2: see threads.test.ts. */
export {};

const { DYING_THREAD: file = "", DYING_BY: how = "" } = process.env;
const preload = `data:text/javascript,
  new BroadcastChannel("die").onmessage = () => { throw new Error("died"); };`;

globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    const isDying = String(url).endsWith(`/${file}`);
    super(url, isDying && how === "an error" ? { ...options, preload: [preload] } : options);
    if (isDying && how === "its end") process.on("SIGUSR2", () => this.terminate());
  }
};
process.on("SIGUSR2", () => new BroadcastChannel("die").postMessage("now"));

await import("../../src/main.ts");
