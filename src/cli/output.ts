/**
 * Writes to standard output and error: results whole, log lines as far as their reader keeps up.
 */
import { constants, fstatSync, openSync, statSync, writeSync } from "node:fs";
import { devNull } from "node:os";
import { mayColor, mayDraw } from "../config.ts";
import { fileError } from "./cli-error.ts";

/** As if by SIGPIPE: nobody is left to read the results. */
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

/** Words for a person. Where they cannot be written there is nobody to tell, and work goes on. */
export function writeWords(text: string): void {
  try {
    writeAll(2, text);
  } catch {}
}

/** Words that are drawn over again; absent where the codes for that would be shown. */
export const drawWords = mayDraw() ? writeWords : undefined;

/** However slow the reader. A reader may go away: then the answer is false. */
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
 * Whether a person reads it. The runtime's stream, which knows, takes 10 to 20 ms to make, so it is
 * not asked of a pipe or a file, nor of the null device, which is as much of a device as a
 * terminal.
 */
export function isTerminal(descriptor: 1 | 2): boolean {
  const output = fstatSync(descriptor);
  if (!output.isCharacterDevice()) return false;
  if (output.rdev === statSync(devNull, { throwIfNoEntry: false })?.rdev) return false;
  return (descriptor === 1 ? process.stdout : process.stderr).isTTY === true;
}

/** Whether standard output is read by a person who likes color. */
export function hasColor(): boolean {
  return isTerminal(1) && mayColor();
}

const retryMs = 100;
const heldBytesMax = 4 * 1024 * 1024;

/**
 * A log must not stop the service: what its reader does not take is held, then dropped and counted.
 */
export function createLogOutput(write: (bytes: Uint8Array) => number): (text: string) => void {
  let held = Buffer.alloc(0);
  let droppedBytes = 0;
  let timer: Timer | undefined;

  function hand(): void {
    timer = undefined;
    try {
      while (held.length > 0) held = held.subarray(write(held));
      if (droppedBytes > 0) {
        const event = { time: new Date().toISOString(), level: "warn", event: "log lines dropped" };
        held = Buffer.from(`${JSON.stringify({ ...event, droppedBytes })}\n`);
        droppedBytes = 0;
        hand();
      }
    } catch {
      timer ??= setTimeout(hand, retryMs);
      timer.unref();
    }
  }

  return (text) => {
    const bytes = Buffer.from(text);
    if (held.length + bytes.length > heldBytesMax) droppedBytes += bytes.length;
    else held = held.length === 0 ? bytes : Buffer.concat([held, bytes]);
    if (timer === undefined) hand();
  };
}

/** Opened at the first line: only a service has a log. */
let logDescriptor: number | undefined;

export const writeLog = createLogOutput((bytes) => {
  logDescriptor ??= openLogDescriptor();
  return writeSync(logDescriptor, bytes);
});

/**
 * What is full would hold the whole process up until somebody reads. So a pipe is opened a second
 * time in a way that says so instead. A socket, as that of systemd's journal, cannot be; but to
 * make a writer of the runtime's for it, which is used for nothing else, has it say so, too. What
 * is neither, or is on a system without /proc, stays as it is.
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
