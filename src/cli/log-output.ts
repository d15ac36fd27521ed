/** Where the service's log goes: standard output, without ever waiting for its reader. */
import { constants, fstatSync, openSync, writeSync } from "node:fs";

const retryMs = 100;
const bufferedBytesMax = 4 * 1024 * 1024;

/**
 * A log must not stop the service: what its reader doesn't take is buffered, then dropped.
 */
export function createLogOutput(write: (bytes: Uint8Array) => number): (text: string) => void {
  let buffered = Buffer.alloc(0);
  let droppedBytes = 0;
  let timer: Timer | undefined;

  function flush(): void {
    timer = undefined;
    try {
      while (buffered.length > 0) buffered = buffered.subarray(write(buffered));
      if (droppedBytes > 0) {
        const event = { time: new Date().toISOString(), level: "warn", event: "log lines dropped" };
        buffered = Buffer.from(`${JSON.stringify({ ...event, droppedBytes })}\n`);
        droppedBytes = 0;
        flush();
      }
    } catch {
      timer ??= setTimeout(flush, retryMs);
      timer.unref();
    }
  }

  return (text) => {
    const bytes = Buffer.from(text);
    if (buffered.length + bytes.length > bufferedBytesMax) droppedBytes += bytes.length;
    else buffered = buffered.length === 0 ? bytes : Buffer.concat([buffered, bytes]);
    if (timer === undefined) flush();
  };
}

/** Opened with the first line: only a service has a log. */
let logDescriptor: number | undefined;

export const writeLog = createLogOutput((bytes) => {
  logDescriptor ??= openLogDescriptor();
  return writeSync(logDescriptor, bytes);
});

/**
 * Writing to a full pipe would block the process, so a pipe is opened again as non-blocking. A
 * socket, such as the journal's, can't be reopened, but creating a writer of the runtime for it
 * makes it non-blocking too. Everything else, and systems without /proc, stay as they are.
 */
function openLogDescriptor(): number {
  try {
    const output = fstatSync(1);
    if (output.isSocket()) Bun.file(1).writer();
    if (!output.isFIFO()) return 1;
    return openSync("/proc/self/fd/1", constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return 1;
  }
}
