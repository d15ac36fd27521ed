/** Reads a request's body: bounded in size and time, and valid UTF-8. */
import { PlantStoreError, refuse } from "../domain/errors.ts";
import { tooLarge } from "./declared-body.ts";
import type { Exchange } from "./exchange.ts";

const bodyTimeoutMs = 15_000;
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Fails with `too-large`, without reading on, with `timeout`, `invalid-request` or `overloaded`.
 */
export function readBody(exchange: Exchange, bytesMax: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (error: PlantStoreError) => {
      // The rest of one that is too long is dropped, as if none of it had been read.
      exchange.isBodyBroken ||= error.code !== "too-large";
      reject(error);
    };
    const onLate = () => fail(tooLate);
    addDeadline(onLate);
    const { request, declaredBody } = exchange;
    const reading = declaredBody.isSmall ? request.bytes() : readChunks(exchange, bytesMax);
    reading.then(
      (bytes) => {
        deadlines.delete(onLate);
        exchange.hasUnreadBody = false;
        const text = decode(bytes);
        if (text === undefined) reject(invalid("must be valid UTF-8"));
        else resolve(text);
      },
      (error) => {
        deadlines.delete(onLate);
        fail(error instanceof PlantStoreError ? error : invalid("must arrive whole"));
      },
    );
  });
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

const chunksPerTick = 16;

/** What a body without a length takes is reserved as it arrives. */
async function readChunks(exchange: Exchange, bytesMax: number): Promise<Uint8Array> {
  const { request, declaredBody, reserved } = exchange;
  const { signal } = request;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let reservedBytes = declaredBody.bytesToReserve;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw tooLarge(bytesMax);
    if (bytes > reservedBytes) {
      reserved.add(bytes - reservedBytes);
      reservedBytes = bytes;
    }
    chunks.push(chunk);
    // Until the next tick, bytes collect into one chunk: there can be 64 thousand single ones.
    if (chunks.length % chunksPerTick === 0) await new Promise(setImmediate);
  }
  // The runtime hands over a body before it looks at what follows the last chunk. Where that is
  // wrong it responds with 400 and closes, and the request must have no effect.
  await new Promise(setImmediate);
  if (signal.aborted) throw invalid("must end with its last chunk");
  if (!declaredBody.hasLength) reserved.add(bytes - reservedBytes);
  return Buffer.concat(chunks);
}

/** What to call for each body that is late, and when: the oldest first. */
const deadlines = new Map<() => void, number>();
const deadlineCheckMs = 1_000;
let deadlineTimer: Timer | undefined;

/**
 * All bodies share one timer, so one that is late is refused up to a second later: a timer for each
 * took about 5 % of a create's time.
 */
function addDeadline(onLate: () => void): void {
  deadlines.set(onLate, performance.now() + bodyTimeoutMs);
  deadlineTimer ??= setInterval(refuseLate, deadlineCheckMs);
}

function refuseLate(): void {
  const nowMs = performance.now();
  for (const [onLate, deadlineMs] of deadlines) {
    if (deadlineMs > nowMs) return;
    deadlines.delete(onLate);
    onLate();
  }
  clearInterval(deadlineTimer);
  deadlineTimer = undefined;
}

const tooLate = new PlantStoreError(
  "timeout",
  `The body must arrive within ${bodyTimeoutMs / 1_000} seconds. Nothing was changed; send it again.`,
);

function invalid(detail: string): PlantStoreError {
  return refuse({ pointer: "", detail: `The body ${detail}.` });
}
