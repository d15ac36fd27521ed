/**
 * One HTTP/1.1 exchange over a socket of its own, byte for byte. Follows no redirect, corrects
 * nothing, keeps no connection.
 */
import { connect as connectPlainly, isIP, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";

export interface Place {
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
}

export interface WireAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** What came after the end of the response, such as a body where there must be none. */
  readonly surplus: Buffer;
}

/** No response came, or none that is HTTP; the message says which. */
export class NoAnswer extends Error {
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

/** Where no body may come, the wait for one that comes anyway. */
const surplusWaitMs = 150;

export function exchange(
  place: Place,
  pieces: readonly Uint8Array[],
  options: { readonly isHead: boolean; readonly timeoutMs: number },
): Promise<WireAnswer> {
  const { isHead, timeoutMs } = options;
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let isWaiting = false;
    const settle = (outcome: WireAnswer | Error) => {
      clearTimeout(timer);
      socket.destroy();
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    };
    const look = (isEnded: boolean) => {
      const answer = readAnswer(Buffer.concat(chunks), { isHead, isEnded });
      if (answer instanceof Error) settle(answer);
      else if (answer === undefined) return;
      else if (isEnded || mayHaveBody(answer.status, isHead)) settle(answer);
      else if (!isWaiting) {
        isWaiting = true;
        setTimeout(() => look(true), surplusWaitMs);
      }
    };
    const timer = setTimeout(() => {
      settle(new NoAnswer(`no complete response within ${timeoutMs / 1_000} seconds`));
    }, timeoutMs);
    const socket = open(place, () => {
      for (const piece of pieces) socket.write(piece);
    });
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      look(false);
    });
    socket.on("end", () => look(true));
    socket.on("close", () => look(true));
    socket.on("error", (error: Error & { code?: string }) => {
      // A response may have come before the connection broke.
      const answer = readAnswer(Buffer.concat(chunks), { isHead, isEnded: true });
      settle(answer instanceof NoAnswer ? new NoAnswer(error.message, error.code) : answer);
    });
  });
}

function open({ host, port, isSecure }: Place, begin: () => void): Socket {
  if (!isSecure) return connectPlainly({ host, port }, begin);
  const name = isIP(host) === 0 ? { servername: host } : {};
  return connectSecurely({ host, port, ALPNProtocols: ["http/1.1"], ...name }, begin);
}

function mayHaveBody(status: number, isHead: boolean): boolean {
  return !isHead && status !== 204 && status !== 304;
}

interface Reading {
  readonly isHead: boolean;
  /** Nothing more will come. */
  readonly isEnded: boolean;
}

export function readAnswer(
  bytes: Buffer,
  reading: Reading & { isEnded: true },
): WireAnswer | NoAnswer;
export function readAnswer(bytes: Buffer, reading: Reading): WireAnswer | NoAnswer | undefined;
/** The first response in the bytes. Absent if more must come first. */
export function readAnswer(bytes: Buffer, reading: Reading): WireAnswer | NoAnswer | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) {
    if (!reading.isEnded) return undefined;
    const what = bytes.length === 0 ? "without a response" : "in the middle of the headers";
    return new NoAnswer(`the connection was closed ${what}`);
  }
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1]);
  if (Number.isNaN(status)) return new NoAnswer(`the response is not HTTP/1.1: ${statusLine}`);
  const rest = bytes.subarray(headEnd + 4);
  // An interim response, such as 100 Continue, comes before the one that counts.
  if (status < 200) return readAnswer(rest, reading);
  const headers = lines.map((line) => {
    const colonAt = line.indexOf(":");
    return [line.slice(0, colonAt), line.slice(colonAt + 1).trim()] as const;
  });
  const framed = mayHaveBody(status, reading.isHead)
    ? readBody(rest, headers, reading.isEnded)
    : { body: Buffer.alloc(0), surplus: rest };
  return framed && !(framed instanceof Error) ? { status, headers, ...framed } : framed;
}

type Framed = Pick<WireAnswer, "body" | "surplus">;

function readBody(
  bytes: Buffer,
  headers: WireAnswer["headers"],
  isEnded: boolean,
): Framed | NoAnswer | undefined {
  const find = (wanted: string) => headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
  const brokenOff = isEnded ? new NoAnswer("the response broke off before its end") : undefined;
  if (find("transfer-encoding")?.toLowerCase() === "chunked") return readChunks(bytes) ?? brokenOff;
  const length = find("content-length");
  if (length === undefined) return isEnded ? { body: bytes, surplus: Buffer.alloc(0) } : undefined;
  if (bytes.length < Number(length)) return brokenOff;
  return { body: bytes.subarray(0, Number(length)), surplus: bytes.subarray(Number(length)) };
}

/** Absent if the last chunk has not come. */
function readChunks(bytes: Buffer): Framed | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    // A minus sign would lead back in an endless loop.
    const digits = /^[\da-f]{1,8}\b/i.exec(bytes.toString("latin1", at, lineEnd))?.[0];
    const size = Number.parseInt(digits ?? "", 16);
    const end = lineEnd + 2 + size;
    if (lineEnd < 0 || Number.isNaN(size) || bytes.length < end + 2) return undefined;
    if (size === 0) return { body: Buffer.concat(parts), surplus: bytes.subarray(end + 2) };
    parts.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}
