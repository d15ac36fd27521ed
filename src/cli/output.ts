/** Writes text to standard output or error, whole, and lives with a reader that went away. */
import { writeSync } from "node:fs";

const pauseMs = 5;
/** How often a reader that does not keep up is waited for before the rest is dropped. */
const pausesMax = 200;

export function writeOutput(descriptor: 1 | 2, text: string): void {
  let bytes = Buffer.from(text);
  for (let pauses = 0; bytes.length > 0 && pauses <= pausesMax; ) {
    try {
      bytes = bytes.subarray(writeSync(descriptor, bytes));
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") throw error;
      pauses++;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
    }
  }
}
