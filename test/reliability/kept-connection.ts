/**
 * A connection that carries many requests, one behind the other or several at once, and tells
 * exactly how the answer to each of them ended. It mends nothing and tries nothing again.
 */
import { connect as connectPlainly, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import { NoResponse, parseResponse, type RawResponse } from "../../src/check/wire.ts";

/** A request that got no answer, or not the whole of one. */
export class Unanswered extends Error {
  /** Whether at least a byte of it came. */
  readonly hasBegun: boolean;

  constructor(message: string, hasBegun: boolean) {
    super(message);
    this.hasBegun = hasBegun;
  }
}

export interface Door {
  readonly port: number;
  readonly isSecure: boolean;
}

/**
 * Up to here, what came is looked at with every piece; a longer answer when it seems to have ended.
 */
const lookedAtBytesMax = 64 * 1024;

export class KeptConnection {
  readonly #socket: Socket;
  readonly #waiting: (PromiseWithResolvers<RawResponse> & { readonly isHead: boolean })[] = [];
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isOver = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (piece: Buffer) => this.#take(piece));
    socket.on("error", () => this.#end());
    socket.on("close", () => this.#end());
  }

  /** Fails if nobody takes it up. */
  static async open({ port, isSecure }: Door): Promise<KeptConnection> {
    const opened = Promise.withResolvers<void>();
    const place = { host: "127.0.0.1", port };
    const socket = isSecure
      ? connectSecurely({ ...place, rejectUnauthorized: false }, opened.resolve)
      : connectPlainly(place, opened.resolve);
    socket.setNoDelay(true);
    socket.once("error", opened.reject);
    socket.once("close", () => opened.reject(new Error("The connection was closed.")));
    await opened.promise;
    return new KeptConnection(socket);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether bytes came that belong to no request. */
  get hasSurplus(): boolean {
    return this.#bytes > 0;
  }

  /** Sends as many requests as the text holds; fails, each for itself, with `Unanswered`. */
  send(text: string | Uint8Array, count = 1, isHead = false): Promise<RawResponse>[] {
    const waiting = Array.from({ length: count }, () => ({
      ...Promise.withResolvers<RawResponse>(),
      isHead,
    }));
    this.#waiting.push(...waiting);
    if (this.#isOver) this.#end();
    else this.#socket.write(text);
    return waiting.map(({ promise }) => promise);
  }

  /** Sends bytes that belong to a request that is under way. */
  sendRest(text: string): void {
    if (!this.#isOver) this.#socket.write(text);
  }

  /** Resolves with the first bytes that come, and takes no more until it is told to. */
  async pauseAtFirst(): Promise<{ resume(): void }> {
    await new Promise((resolve) => this.#socket.once("data", resolve).once("close", resolve));
    this.#socket.pause();
    return { resume: () => this.#socket.resume() };
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    const isWorthALook = this.#bytes <= lookedAtBytesMax || piece.subarray(-4).equals(blankLine);
    while (isWorthALook && this.#waiting.length > 0 && this.#bytes > 0) {
      const isHead = this.#waiting[0]?.isHead === true;
      const answer = parseResponse(this.#join(), { isHead, isEnded: false });
      if (answer === undefined) return;
      this.#settle(answer);
    }
  }

  #end(): void {
    this.#isOver = true;
    while (this.#waiting.length > 0) {
      const isHead = this.#waiting[0]?.isHead === true;
      this.#settle(parseResponse(this.#join(), { isHead, isEnded: true }));
    }
  }

  #settle(answer: RawResponse | NoResponse): void {
    const hasBegun = this.#bytes > 0;
    const rest = answer instanceof NoResponse ? Buffer.alloc(0) : answer.surplus;
    this.#pieces = [rest];
    this.#bytes = rest.length;
    const waiter = this.#waiting.shift();
    if (answer instanceof NoResponse) waiter?.reject(new Unanswered(answer.message, hasBegun));
    else waiter?.resolve(answer);
  }

  #join(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0] as Buffer;
  }
}

const blankLine = Buffer.from("\r\n\r\n");

/** A request as it goes over the wire. */
export function writeRequest(
  line: string,
  { token, headers = {}, body }: { token: string; headers?: Record<string, string>; body?: string },
): string {
  const lines = [`${line} HTTP/1.1`, "Host: plants.test", `Authorization: Bearer ${token}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined) {
    lines.push("Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n${body ?? ""}`;
}
