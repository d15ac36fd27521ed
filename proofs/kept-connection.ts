/**
 * A connection that carries one request after the other, and reports exactly how the response to
 * each of them ended. It retries nothing.
 */
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface RawResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** What came after the end of the response. */
  readonly surplus: Buffer;
}

/** No complete HTTP response came; the message says why. */
export class NoResponse extends Error {}

/** A request that got no response, or only a part of it. */
export class Unanswered extends Error {
  constructor(
    message: string,
    /** At least a byte of the response came. */
    readonly hasBegun: boolean,
    readonly isHung: boolean,
  ) {
    super(message);
  }
}

/** A request without a response by then hangs, even on a busy machine. */
export const hangMs = 60_000;
/** Longer responses are parsed only when they seem to be complete. */
const parsedBytesMax = 1024 * 1024;
const noBytes: Buffer = Buffer.alloc(0);
const blankLine = Buffer.from("\r\n\r\n");

export class KeptConnection {
  readonly #socket: Socket;
  #waiting: PromiseWithResolvers<RawResponse> | undefined;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isOver = false;
  #isHung = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (piece: Buffer) => {
      this.#pieces.push(piece);
      this.#bytes += piece.length;
      const isLong = this.#bytes > parsedBytesMax;
      if (!isLong || piece.subarray(-4).equals(blankLine)) this.#parse();
    });
    const end = () => {
      this.#isOver = true;
      this.#parse();
    };
    socket.on("error", end).on("close", end);
  }

  static async open(address: { port: number; isSecure?: boolean }): Promise<KeptConnection> {
    const opened = Promise.withResolvers<void>();
    const place = { host: "127.0.0.1", port: address.port };
    const socket = address.isSecure
      ? connectTls({ ...place, rejectUnauthorized: false }, opened.resolve)
      : connectPlain(place, opened.resolve);
    socket.setNoDelay(true);
    socket.once("error", opened.reject);
    socket.once("close", () => opened.reject(new Error("The connection was closed.")));
    await opened.promise;
    return new KeptConnection(socket);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Sends a request, or the rest of one. Fails with `Unanswered`. */
  ask(text: string): Promise<RawResponse> {
    const waiting = Promise.withResolvers<RawResponse>();
    this.#waiting = waiting;
    const timer = setTimeout(() => {
      this.#isHung = true;
      this.close();
    }, hangMs);
    if (this.#isOver) this.#parse();
    else this.#socket.write(text);
    return waiting.promise.finally(() => clearTimeout(timer));
  }

  /** Sends a part of a request, before `ask` sends the rest. */
  sendPart(text: string): void {
    if (!this.#isOver) this.#socket.write(text);
  }

  /** Resolves with the first bytes that come, and reads no more until `resume` is called. */
  async pauseAtFirst(): Promise<{ resume(): void }> {
    await new Promise<void>((resolve) => {
      const stop = () => {
        this.#socket.off("data", stop).off("close", stop);
        resolve();
      };
      this.#socket.on("data", stop).on("close", stop);
    });
    this.#socket.pause();
    return { resume: () => this.#socket.resume() };
  }

  close(): void {
    this.#socket.destroy();
  }

  #parse(): void {
    if (!this.#waiting) return;
    const received = Buffer.concat(this.#pieces);
    const response = parseResponse(received, this.#isOver);
    this.#pieces = [received];
    if (response === undefined) return;
    if (response instanceof NoResponse) {
      const message = this.#isHung ? `none within ${hangMs} ms` : response.message;
      this.#waiting.reject(new Unanswered(message, received.length > 0, this.#isHung));
    } else {
      this.#waiting.resolve(response);
      this.#pieces = [response.surplus];
      this.#bytes = response.surplus.length;
    }
    this.#waiting = undefined;
  }
}

export function headerOf({ headers }: RawResponse, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1];
}

/** A request as it goes over the wire. */
export function writeRequest(
  line: string,
  { token, headers = {}, body }: { token: string; headers?: Record<string, string>; body?: string },
): string {
  const lines = [`${line} HTTP/1.1`, "Host: plants.test", `Authorization: Bearer ${token}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined) {
    if (!("Content-Type" in headers)) lines.push("Content-Type: application/json");
    lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n${body ?? ""}`;
}

/** The first response in the bytes; `undefined` until it is complete. */
export function parseResponse(
  bytes: Buffer,
  isEnded: boolean,
): RawResponse | NoResponse | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) {
    if (!isEnded) return undefined;
    const what = bytes.length === 0 ? "without a response" : "in the middle of the headers";
    return new NoResponse(`the connection was closed ${what}`);
  }
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1]);
  if (Number.isNaN(status)) return new NoResponse(`the response is not HTTP/1.1: ${statusLine}`);
  const rest = bytes.subarray(headEnd + 4);
  // An interim response, such as 100 Continue, comes before the final one.
  if (status < 200) return parseResponse(rest, isEnded);
  const headers = lines.map((line) => {
    const colonAt = line.indexOf(":");
    return [line.slice(0, colonAt), line.slice(colonAt + 1).trim()] as const;
  });
  const find = (wanted: string) => headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
  const respond = (body: Buffer, surplus = noBytes) => ({ status, headers, body, surplus });
  if (status === 204 || status === 304) return respond(noBytes, rest);
  const brokenOff = isEnded ? new NoResponse("the response broke off before its end") : undefined;
  if (find("transfer-encoding")?.toLowerCase() === "chunked") {
    const chunked = parseChunks(rest);
    return chunked ? respond(...chunked) : brokenOff;
  }
  const length = find("content-length");
  if (length === undefined) return isEnded ? respond(rest) : undefined;
  if (rest.length < Number(length)) return brokenOff;
  return respond(rest.subarray(0, Number(length)), rest.subarray(Number(length)));
}

/** The body and what comes after it; `undefined` until the last chunk is there. */
function parseChunks(bytes: Buffer): [body: Buffer, surplus: Buffer] | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    // Digits only: a negative size would loop forever.
    const digits = /^[\da-f]{1,8}\b/i.exec(bytes.toString("latin1", at, lineEnd))?.[0];
    const size = Number.parseInt(digits ?? "", 16);
    const end = lineEnd + 2 + size;
    if (lineEnd < 0 || Number.isNaN(size) || bytes.length < end + 2) return undefined;
    if (size === 0) return [Buffer.concat(parts), bytes.subarray(end + 2)];
    parts.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}
