/** Where the service's log goes: standard output, without ever waiting for its reader. */
import { constants, fstatSync, openSync, writeSync } from "node:fs";

const retryMs = 100;
const bufferedBytesMax = 4 * 1024 * 1024;

/**
 * A log must not stop the service: what its reader doesn't take is buffered, then dropped.
 * `onDropped` is called once the reader is back, and may write a line about it.
 */
export function createLogOutput(
  write: (bytes: Uint8Array) => number,
  onDropped: (bytes: number) => void,
): (text: string) => void {
  let buffered = Buffer.alloc(0);
  let droppedBytes = 0;
  let timer: Timer | undefined;

  function flush(): void {
    timer = undefined;
    try {
      while (buffered.length > 0) buffered = buffered.subarray(write(buffered));
    } catch {
      timer ??= setTimeout(flush, retryMs);
      timer.unref();
      return;
    }
    if (droppedBytes === 0) return;
    const dropped = droppedBytes;
    droppedBytes = 0;
    onDropped(dropped);
  }

  return (text) => {
    const bytes = Buffer.from(text);
    if (buffered.length + bytes.length > bufferedBytesMax) droppedBytes += bytes.length;
    else buffered = buffered.length === 0 ? bytes : Buffer.concat([buffered, bytes]);
    if (timer === undefined) flush();
  };
}

export function openLogOutput(onDropped: (bytes: number) => void): (text: string) => void {
  const descriptor = openLogDescriptor();
  return createLogOutput((bytes) => writeSync(descriptor, bytes), onDropped);
}

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
