/** The program, one of whose threads ends once there is a certain file: see threads.test.ts. */
import { existsSync } from "node:fs";

const { DYING_THREAD: name = "", DYING_BY: how = "", DYING_FLAG: flag = "" } = process.env;
const preload = `data:text/javascript,
  const { existsSync } = process.getBuiltinModule("node:fs");
  setInterval(() => { if (existsSync("${flag}")) throw new Error("died"); }, 20);`;

globalThis.Worker = class extends Worker {
  constructor(url: string | URL, options?: WorkerOptions) {
    const isDying = String(url).endsWith(`/${name}`);
    super(url, isDying && how === "an error" ? { ...options, preload: [preload] } : options);
    if (!isDying || how !== "its end") return;
    setInterval(() => {
      if (existsSync(flag)) this.terminate();
    }, 20);
  }
};

await import("../../src/main.ts");
