/**
 * A connection that carries one request after the other, and reports exactly how the response to
 * each of them ended. It retries nothing.
 */
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { NoResponse, parseResponse, type RawResponse } from "./raw-response.ts";

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

/** A request without a response by then hangs. */
const hangMs = 10_000;
/** Longer responses are parsed only when they seem to be complete. */
const parsedBytesMax = 1024 * 1024;
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
