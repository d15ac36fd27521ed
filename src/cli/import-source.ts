/** Opens a file or a pipe so that an import can read it twice. */
import {
  createReadStream,
  fstatSync,
  openSync,
  readSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mapFileError, toFileError } from "../domain/file-failure.ts";
import type { Call } from "./command.ts";

const chunkBytes = 64 * 1024;

/** A descriptor that can be read repeatedly: a pipe is copied to a temporary file first. */
export async function openSource(
  { terminal }: Call,
  path: string,
  signal: AbortSignal,
): Promise<number> {
  if (path === "-") {
    if (terminal.isStderrTty && process.stdin.isTTY) {
      terminal.say("Reading plants from the terminal, one per line. Press Ctrl+D to end.");
    }
    return untilAborted(spool(process.stdin), signal);
  }
  try {
    const descriptor = openSync(path, "r");
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw toFileError("read", path, { code: "EISDIR" });
    return stats.isFile()
      ? descriptor
      : await untilAborted(spool(createReadStream(path, { fd: descriptor })), signal);
  } catch (error) {
    throw mapFileError("read", path, error);
  }
}

/** Reading a pipe itself can't be aborted while nobody writes to it. */
function untilAborted<Result>(reading: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
  return Promise.race([reading, aborted]);
}

async function spool(chunks: AsyncIterable<Uint8Array>): Promise<number> {
  const path = join(tmpdir(), `plantstore-import-${crypto.randomUUID()}`);
  try {
    const descriptor = openSync(path, "wx+", 0o600);
    // A file without a name disappears with the process, even if that is killed.
    unlinkSync(path);
    for await (const chunk of chunks) writeFileSync(descriptor, chunk);
    return descriptor;
  } catch (error) {
    throw mapFileError("write", path, error);
  }
}

export function* readChunks(descriptor: number): Generator<Uint8Array, void> {
  const chunk = new Uint8Array(chunkBytes);
  for (let position = 0; ; ) {
    const count = readSync(descriptor, chunk, 0, chunk.length, position);
    if (count === 0) return;
    position += count;
    yield chunk.subarray(0, count);
  }
}
