/**
 * This side of examiner.ts: hands it one seed at a time, and starts another when it crashed or
 * hung.
 */
import { join } from "node:path";
import type { Trial } from "../proof.ts";

/** Nothing that it does takes a second. */
const hangMs = 20_000;

export class ExaminerProcess {
  #child: Bun.Subprocess | undefined;
  #settle: (trial: Trial) => void = () => {};

  async examine(seed: number): Promise<Trial> {
    const child = this.#child ?? this.#start();
    const { promise, resolve } = Promise.withResolvers<Trial>();
    this.#settle = resolve;
    const timer = setTimeout(() => this.#replace("it hung"), hangMs);
    child.send(seed);
    const trial = await promise;
    clearTimeout(timer);
    return trial;
  }

  [Symbol.dispose](): void {
    this.#child?.kill("SIGKILL");
    this.#child = undefined;
  }

  #start(): Bun.Subprocess {
    const examiner = join(import.meta.dir, "examiner.ts");
    const child = Bun.spawn([process.execPath, examiner], {
      ipc: (trial: Trial) => this.#settle(trial),
      onExit: (ended, exitCode, signal) => {
        if (this.#child === ended) this.#replace(`it crashed: ${signal ?? exitCode}`);
      },
      stdio: ["ignore", "inherit", "inherit"],
    });
    this.#child = child;
    return child;
  }

  #replace(fault: string): void {
    this[Symbol.dispose]();
    this.#settle({ faults: [fault], figures: {} });
  }
}
