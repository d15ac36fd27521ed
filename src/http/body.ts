/** Takes in a request's body: of the right type, bounded in size and time, and valid UTF-8. */
import { overloaded, PlantStoreError } from "../domain/errors.ts";
import { Deadlines } from "./deadlines.ts";

export const bodyBytesMax = 64 * 1024;
export const bodyTimeoutMs = 15_000;

const jsonType = /^application\/json\s*(?:;\s*charset\s*=\s*(?:utf-8|"utf-8")\s*)?$/i;
const deadlines = new Deadlines(bodyTimeoutMs);
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * What `Content-Length` declares; absent without it. A repeated one, which the runtime lets
 * through, is not a number: nothing may take it for a small one.
 */
function declaredBytes(headers: Headers): number | undefined {
  const length = headers.get("content-length");
  if (length === null) return undefined;
  return /^\d+$/.test(length) ? Number(length) : Number.NaN;
}

export function hasBody(headers: Headers): boolean {
  const bytes = declaredBytes(headers);
  return (bytes !== undefined && bytes !== 0) || headers.has("transfer-encoding");
}

/** Whether a body can be longer than what is read of it. */
export function mayExceedLimit(headers: Headers): boolean {
  const bytes = declaredBytes(headers);
  return bytes === undefined ? headers.has("transfer-encoding") : !(bytes <= bodyBytesMax);
}

/**
 * Fails with `invalid-request` where others could see another end of the body than the runtime
 * does: it also takes a list with empty items, such as `chunked,`, for chunks.
 */
export function checkFraming(headers: Headers): void {
  const encoding = headers.get("transfer-encoding");
  if (encoding === null || encoding.toLowerCase() === "chunked") return;
  throw unclear("Transfer-Encoding", "must be chunked, and nothing else.");
}

/** Fails with `unsupported-media-type`; a request that has neither body nor type passes. */
export function checkContentType(headers: Headers): void {
  const type = headers.get("content-type");
  const encoding = headers.get("content-encoding")?.toLowerCase() ?? "identity";
  const isJson = type === null ? !hasBody(headers) : jsonType.test(type);
  if (isJson && encoding === "identity") return;
  throw new PlantStoreError(
    "unsupported-media-type",
    "Send the body as plain JSON, with the header Content-Type: application/json.",
  );
}

/** What the bodies that a thread is waiting for may take together, should all of each come. */
export const expectedBytesMax = 256 * 1024 * 1024;
/** And those of one caller, so that nobody alone keeps all others from sending theirs. */
export const callerBytesMax = expectedBytesMax / 4;
let expectedBytes = 0;
const expectedOf = new Map<string, number>();

function expect(credential: string, bytes: number): void {
  const ofCaller = (expectedOf.get(credential) ?? 0) + bytes;
  if (expectedBytes + bytes > expectedBytesMax || ofCaller > callerBytesMax) throw overloaded;
  expectedBytes += bytes;
  expectedOf.set(credential, ofCaller);
}

function expectNoMore(credential: string, bytes: number): void {
  const ofCaller = (expectedOf.get(credential) ?? 0) - bytes;
  expectedBytes -= bytes;
  if (ofCaller > 0) expectedOf.set(credential, ofCaller);
  else expectedOf.delete(credential);
}

/** Fails with `too-large`, without reading on, with `invalid-request`, or with `overloaded`. */
export async function readBody(request: Request, credential = ""): Promise<string> {
  const bytes = declaredBytes(request.headers);
  if (Number.isNaN(bytes)) throw unclear("Content-Length", "must be given once, as a number.");
  if (bytes !== undefined && bytes > bodyBytesMax) throw tooLarge();
  const expected = bytes ?? bodyBytesMax;
  expect(credential, expected);
  try {
    // With a declared length the runtime reads no more than that; without, each chunk is counted.
    return await withDeadline(bytes === undefined ? readChunks(request) : request.bytes());
  } finally {
    expectNoMore(credential, expected);
  }
}

/** Absent if the bytes are not UTF-8. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

const chunksATurn = 16;

async function readChunks(request: Request): Promise<Uint8Array> {
  const { signal } = request;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > bodyBytesMax) throw tooLarge();
    chunks.push(chunk);
    // What comes meanwhile is handed over as one: a chunk may hold a single byte, and there can be
    // 64 thousand of them, of a hundred clients, in one turn of the event loop.
    if (chunks.length % chunksATurn === 0) await new Promise(setImmediate);
  }
  // The runtime hands over a body before it looks at what stands behind the last chunk. Where that
  // is wrong it answers with 400 and closes, and nothing may come of the request.
  await new Promise(setImmediate);
  if (signal.aborted) throw invalid("must end with its last chunk");
  return Buffer.concat(chunks);
}

function withDeadline(reading: Promise<Uint8Array>): Promise<string> {
  return new Promise((resolve, reject) => {
    const watched = deadlines.watch(() =>
      reject(invalid(`must arrive within ${bodyTimeoutMs / 1000} seconds`)),
    );
    reading.then(
      (bytes) => {
        deadlines.forget(watched);
        const text = decode(bytes);
        if (text === undefined) reject(invalid("must be valid UTF-8"));
        else resolve(text);
      },
      (error) => {
        deadlines.forget(watched);
        reject(error instanceof PlantStoreError ? error : invalid("must arrive whole"));
      },
    );
  });
}

function unclear(header: string, detail: string): PlantStoreError {
  return new PlantStoreError("invalid-request", `${header} ${detail}`, {
    faults: [{ header, detail }],
  });
}

function tooLarge(): PlantStoreError {
  return new PlantStoreError("too-large", `Send a body of at most ${bodyBytesMax} bytes.`);
}

function invalid(detail: string): PlantStoreError {
  return new PlantStoreError("invalid-request", `The body ${detail}.`, {
    faults: [{ pointer: "", detail: `The body ${detail}.` }],
  });
}
