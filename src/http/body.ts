/** Reads a request's body: JSON, bounded in size and time, and valid UTF-8. */
import { PlantStoreError, refuse } from "../domain/errors.ts";
import type { RequestBody } from "./operation.ts";
import type { Reservation } from "./reserved-bytes.ts";

const bodyTimeoutMs = 15_000;

/**
 * A type, and perhaps its charset. A semicolon with nothing after it is no parameter, and some
 * clients send it. Anchored at both ends: a search would take quadratic time on many spaces.
 */
const typeInUtf8 = /^([^\s;]+)\s*(?:;\s*charset\s*=\s*(?:utf-8|"utf-8")\s*)?(?:;\s*)?$/i;
const smallBodyBytes = 4 * 1024;
/** Reserved for a body that declares no length, until it has arrived or is longer. */
const undeclaredBytes = 256 * 1024;
/** If a body declares more, the rest of it isn't dropped after a refusal. */
const droppedBytesMax = 1024 * 1024;
/**
 * How many chunked bodies a second are dropped after their responses. The runtime parses what it
 * drops: without a bound, 100 connections held others up for half a second.
 */
const droppedPerSecondMax = 16;
const jsonType = "application/json";
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

/** A request's body: none, not read yet, or read. */
export class IncomingBody {
  readonly #request: Request;
  readonly #declaredBytes: number | undefined;
  /** Whether it comes in chunks, and nothing says otherwise. */
  readonly isChunked: boolean;
  /** Whether there is a body that hasn't been read whole. */
  isPending: boolean;
  /** There was no room for it, or it didn't arrive as it should. */
  isRefused = false;

  constructor(request: Request) {
    const { headers } = request;
    const bytes = declaredBytes(headers);
    const encoding = headers.get("transfer-encoding");
    this.#request = request;
    this.#declaredBytes = bytes;
    this.isChunked = encoding?.toLowerCase() === "chunked" && bytes === undefined;
    this.isPending = (bytes !== undefined && bytes !== 0) || encoding !== null;
  }

  /**
   * Even with every character escaped, a valid plant is this small. Others are bulks, or invalid.
   */
  get #isSmall(): boolean {
    return this.#declaredBytes !== undefined && this.#declaredBytes <= smallBodyBytes;
  }

  /** Whether it may be longer than any plant: the runtime keeps what arrives until it's read. */
  get isLong(): boolean {
    return this.isPending && !this.#isSmall;
  }

  /**
   * What to reserve for a long body before it's read. One over 1 MiB, or whose length isn't a
   * number, is refused unread.
   */
  get bytesToReserve(): number {
    const bytes = this.#declaredBytes ?? undeclaredBytes;
    return bytes <= droppedBytesMax ? bytes : smallBodyBytes;
  }

  /** Fails with `unsupported-media-type`, `too-large` or `invalid-request`, without reading. */
  check({ bytesMax, otherType }: Pick<RequestBody, "bytesMax" | "otherType">): void {
    checkContentType(this.#request.headers, this.isPending, otherType);
    const bytes = this.#declaredBytes;
    if (Number.isNaN(bytes)) throw ambiguousLength;
    if (bytes !== undefined && bytes > bytesMax) throw tooLarge(bytesMax);
  }

  /**
   * Whether the connection must be closed after the response, because the rest of the body is long,
   * late, or could be taken for the next request. Otherwise the runtime drops the rest, so that a
   * client or proxy that is still sending it sees the response.
   */
  get mustClose(): boolean {
    if (!this.isPending) return false;
    // A client that waits for a 100 may send its next request instead of the body.
    if (this.isRefused || !isExpectationMet(this.#request.headers)) return true;
    const isBounded = (this.#declaredBytes ?? Number.NaN) <= droppedBytesMax;
    return !(this.isChunked || isBounded);
  }

  /**
   * Fails with `too-large`, without reading on, with `invalid-request`, or with `overloaded`.
   * `reserved` follows the size of a body without a length.
   */
  read(bytesMax: number, reserved: Reservation): Promise<string> {
    return new Promise((resolve, reject) => {
      const fail = (error: PlantStoreError) => {
        // The rest of one that is too long is dropped, as if none of it had been read.
        this.isRefused ||= error.code !== "too-large";
        reject(error);
      };
      const reading = this.#isSmall
        ? this.#request.bytes()
        : readChunks(this.#request, bytesMax, this.#declaredBytes === undefined, reserved);
      const onLate = () => fail(tooLate);
      addDeadline(onLate);
      reading.then(
        (bytes) => {
          deadlines.delete(onLate);
          this.isPending = false;
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
}

/**
 * Fails with `invalid-request` if a proxy could disagree about where the body ends. The runtime
 * even accepts `chunked,`.
 */
export function checkFraming(headers: Headers): void {
  const encoding = headers.get("transfer-encoding");
  if (encoding === null || encoding.toLowerCase() === "chunked") return;
  throw refuse({ header: "Transfer-Encoding", detail: "must be chunked, and nothing else." });
}

/** Fails with `expectation-failed`: otherwise the client would wait for a 100 that never comes. */
export function checkExpectation(headers: Headers): void {
  if (!isExpectationMet(headers)) throw unknownExpectation;
}

/** The runtime has sent the 100 by now. It knows this spelling only, and Java's isn't it. */
function isExpectationMet(headers: Headers): boolean {
  const expectation = headers.get("expect");
  return expectation === null || expectation === "100-continue";
}

/** Fails with `unsupported-media-type`; a request that has neither body nor type passes. */
function checkContentType(headers: Headers, hasBody: boolean, otherType?: string): void {
  const header = headers.get("content-type");
  const [, type = ""] = typeInUtf8.exec(header ?? "") ?? [];
  const encoding = headers.get("content-encoding")?.toLowerCase() ?? "identity";
  const isExpected =
    header === null ? !hasBody : [jsonType, otherType].includes(type.toLowerCase());
  if (isExpected && encoding === "identity") return;
  throw new PlantStoreError(
    "unsupported-media-type",
    "Send JSON in UTF-8 with Content-Type: application/json, and no Content-Encoding.",
  );
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

const chunksPerTick = 16;

async function readChunks(
  request: Request,
  bytesMax: number,
  mustReserve: boolean,
  reserved: Reservation,
): Promise<Uint8Array> {
  const { signal } = request;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let reservedBytes = mustReserve ? undeclaredBytes : bytesMax;
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
  if (mustReserve) reserved.add(bytes - reservedBytes);
  return Buffer.concat(chunks);
}

/** Returns whether one more chunked body may be dropped, after its response. */
export function createDropLimit(now: () => number): () => boolean {
  let secondStartMs = Number.NEGATIVE_INFINITY;
  let dropped = 0;
  return () => {
    const nowMs = now();
    if (nowMs - secondStartMs >= 1_000) {
      secondStartMs = nowMs;
      dropped = 0;
    }
    return ++dropped <= droppedPerSecondMax;
  };
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

const ambiguousLength = refuse({
  header: "Content-Length",
  detail: "must be given once, as a number.",
});

const unknownExpectation = new PlantStoreError(
  "expectation-failed",
  "Leave out the header Expect, or send it as Expect: 100-continue, in lower case.",
);

const tooLate = new PlantStoreError(
  "timeout",
  `The body must arrive within ${bodyTimeoutMs / 1_000} seconds. Nothing was changed; send it again.`,
);

function tooLarge(bytesMax: number): PlantStoreError {
  return new PlantStoreError("too-large", `Send a body of at most ${bytesMax} bytes.`);
}

function invalid(detail: string): PlantStoreError {
  return refuse({ pointer: "", detail: `The body ${detail}.` });
}
