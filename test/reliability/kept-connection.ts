/**
 * A connection that carries many requests, one after the other or pipelined, and reports exactly
 * how the response to each of them ended. It retries nothing.
 */
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { NoResponse, parseResponse, type RawResponse } from "../../src/check/wire.ts";

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

export interface Address {
  readonly port: number;
  readonly isSecure: boolean;
}

/** A request without a response by then hangs. */
const hangMs = 10_000;
/** Longer responses are parsed only when they seem to be complete. */
const parsedBytesMax = 1024 * 1024;
const blankLine = Buffer.from("\r\n\r\n");

export class KeptConnection {
  readonly #socket: Socket;
  readonly #waiting: PromiseWithResolvers<RawResponse>[] = [];
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isOver = false;
  #isHung = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (piece: Buffer) => this.#take(piece));
    socket.on("error", () => this.#end());
    socket.on("close", () => this.#end());
  }

  static async open({ port, isSecure }: Address): Promise<KeptConnection> {
    const opened = Promise.withResolvers<void>();
    const place = { host: "127.0.0.1", port };
    const socket = isSecure
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

  /** Sends one request. Fails with `Unanswered`. */
  async ask(text: string): Promise<RawResponse> {
    const timer = setTimeout(() => {
      this.#isHung = true;
      this.close();
    }, hangMs);
    const [response] = this.send(text) as [Promise<RawResponse>];
    return response.finally(() => clearTimeout(timer));
  }

  /** Sends as many requests as the text holds. Each fails with `Unanswered`. */
  send(text: string, count = 1): Promise<RawResponse>[] {
    const waiting = Array.from({ length: count }, () => Promise.withResolvers<RawResponse>());
    this.#waiting.push(...waiting);
    if (this.#isOver) this.#end();
    else this.#socket.write(text);
    return waiting.map(({ promise }) => promise);
  }

  /** Sends more bytes of a request that has begun. */
  sendRest(text: string): void {
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

  #take(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    const isWorthParsing = this.#bytes <= parsedBytesMax || piece.subarray(-4).equals(blankLine);
    while (isWorthParsing && this.#waiting.length > 0 && this.#bytes > 0) {
      const response = parseResponse(this.#join(), { isHead: false, isEnded: false });
      if (response === undefined) return;
      this.#settle(response);
    }
  }

  #end(): void {
    this.#isOver = true;
    while (this.#waiting.length > 0) {
      const response = parseResponse(this.#join(), { isHead: false, isEnded: true });
      this.#settle(response as RawResponse | NoResponse);
    }
  }

  #settle(response: RawResponse | NoResponse): void {
    const hasBegun = this.#bytes > 0;
    const rest = response instanceof NoResponse ? Buffer.alloc(0) : response.surplus;
    this.#pieces = [rest];
    this.#bytes = rest.length;
    const waiter = this.#waiting.shift();
    if (response instanceof NoResponse) {
      const message = this.#isHung ? `none within ${hangMs} ms` : response.message;
      waiter?.reject(new Unanswered(message, hasBegun, this.#isHung));
    } else waiter?.resolve(response);
  }

  #join(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0] as Buffer;
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
