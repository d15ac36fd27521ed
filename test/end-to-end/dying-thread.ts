/** The program, one of whose threads ends once there is a certain file: see threads.test.ts. */
import { existsSync } from "node:fs";

const { DYING_THREAD: name, DYING_FLAG: flag = "" } = process.env;

globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(url, options);
    if (!String(url).endsWith(`/${name}`)) return;
    setInterval(() => {
      if (existsSync(flag)) this.terminate();
    }, 20);
  }
};

await import("../../src/main.ts");
