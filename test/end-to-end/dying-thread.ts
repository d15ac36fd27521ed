/** The program, one of whose threads ends once there is a certain file: see threads.test.ts. */
export {};

const { DYING_THREAD: name, DYING_FLAG: flag } = process.env;
const preload = `data:text/javascript,
  const { existsSync } = process.getBuiltinModule("node:fs");
  setInterval(() => { if (existsSync("${flag}")) process.exit(); }, 20);`;

globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, String(url).endsWith(`/${name}`) ? { ...options, preload: [preload] } : options);
  }
};

await import("../../src/main.ts");
