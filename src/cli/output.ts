/**
 * Writes to standard output and error: results completely, log lines as fast as they are read.
 */
import { constants, fstatSync, openSync, statSync, writeSync } from "node:fs";
import { devNull } from "node:os";
import { mayColor, mayDraw } from "../config.ts";
import { fileError } from "./cli-error.ts";

/** As after SIGPIPE: nobody reads the results any more. */
const unreadExitCode = 141;
const pauseMs = 5;

/**
 * Writes all of it, and ends the process if its reader went away. Throws a `CliError` that names
 * the place if it cannot be written.
 */
export function writeResult(descriptor: number, text: string, place: string): void {
  try {
    if (!writeAll(descriptor, text)) process.exit(unreadExitCode);
  } catch (error) {
    throw fileError("write", place, error);
  }
}

/** Messages for a person. If they cannot be written, work goes on. */
export function writeMessage(text: string): void {
  try {
    writeAll(2, text);
  } catch {}
}

/** Waits for a slow reader. Returns false if the reader went away. */
function writeAll(descriptor: number, text: string): boolean {
  let bytes = Buffer.from(text);
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(descriptor, bytes));
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === "EPIPE") return false;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
    }
  }
  return true;
}

/**
 * Whether a person reads it. The runtime's stream knows, but takes 10 to 20 ms to create, so pipes,
 * files and the null device are told apart without it.
 */
export function isTerminal(descriptor: 1 | 2): boolean {
  const output = fstatSync(descriptor);
  if (!output.isCharacterDevice()) return false;
  if (output.rdev === statSync(devNull, { throwIfNoEntry: false })?.rdev) return false;
  return (descriptor === 1 ? process.stdout : process.stderr).isTTY === true;
}

/** Draws a line over again; absent where nobody watches, or escape codes would be shown. */
export const drawMessage = isTerminal(2) && mayDraw() ? writeMessage : undefined;

/** Whether standard output may be colored. */
export function hasColor(): boolean {
  return isTerminal(1) && mayColor();
}

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
