/**
 * The HTTP client of all proofs: connections that carry one request after the other, and report
 * exactly how the response to each of them ended. Nothing is retried unseen.
 */
import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { type RunningService, waitFor } from "./running-service.ts";

export interface RawResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** A request that got no response, or only a part of it. */
export class Unanswered extends Error {
  constructor(
    message: string,
    /** At least a byte of the response came. */
    readonly hasBegun: boolean,
  ) {
    super(message);
  }
}

/** A request without a response by then hangs, even on a busy machine. */
export const hangMs = 60_000;
const longBytes = 1024 * 1024;
const blankLine = "\r\n\r\n";

export class KeptConnection {
  isOver = false;
  readonly #socket: Socket;
  #waiting: PromiseWithResolvers<RawResponse> | undefined;
  #pieces: Buffer[] = [];
  #bytes = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (piece: Buffer) => {
      this.#pieces.push(piece);
      this.#bytes += piece.length;
      // The end of a long list is its last chunk.
      if (this.#bytes < longBytes || piece.toString("latin1", piece.length - 4) === blankLine)
        this.#parse();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      this.isOver = true;
      this.#parse();
    });
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

  /** Sends a request, or the rest of one. Fails with `Unanswered`. */
  ask(text: string): Promise<RawResponse> {
    const waiting = Promise.withResolvers<RawResponse>();
    this.#waiting = waiting;
    const timer = setTimeout(() => {
      waiting.reject(new Error(`It got no response within ${hangMs} ms.`));
      this.close();
    }, hangMs);
    this.sendPart(text);
    if (this.isOver) this.#parse();
    return waiting.promise.finally(() => clearTimeout(timer));
  }

  /** Sends a part of a request, before `ask` sends the rest. */
  sendPart(text: string): void {
    if (!this.isOver) this.#socket.write(text);
  }

  /** Resolves with the first bytes that come, and reads no more until `resume` is called. */
  async pauseAtFirst(): Promise<{ resume(): void }> {
    await Promise.race([once(this.#socket, "data"), once(this.#socket, "close")]);
    this.#socket.pause();
    return { resume: () => this.#socket.resume() };
  }

  close(): void {
    this.#socket.destroy();
  }

  #parse(): void {
    if (!this.#waiting) return;
    const received = Buffer.concat(this.#pieces);
    this.#pieces = [received];
    const response = parseResponse(received);
    if (response === undefined && !this.isOver) return;
    if (response === undefined) {
      const how = received.length === 0 ? "without a response" : "in the middle of a response";
      this.#waiting.reject(new Unanswered(`it was closed ${how}`, received.length > 0));
    } else {
      this.#waiting.resolve(response);
      this.#pieces = [];
      this.#bytes = 0;
    }
    this.#waiting = undefined;
  }
}

/** A request as it goes over the wire. */
export function writeRequest(
  line: string,
  options: { token: string; headers?: Record<string, string>; body?: string | undefined },
): string {
  const { token, headers = {}, body } = options;
  const lines = [`${line} HTTP/1.1`, "Host: plants.test"];
  if (token !== "") lines.push(`Authorization: Bearer ${token}`);
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined) {
    if (!("Content-Type" in headers)) lines.push("Content-Type: application/json");
    lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  }
  return `${lines.join("\r\n")}\r\n\r\n${body ?? ""}`;
}

/** The first response in the bytes; `undefined` if it isn't complete. */
function parseResponse(bytes: Buffer): RawResponse | undefined {
  const headEnd = bytes.indexOf(blankLine);
  if (headEnd < 0) return undefined;
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const status = Number(statusLine.split(" ")[1]);
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colonAt = line.indexOf(":");
      return [line.slice(0, colonAt), line.slice(colonAt + 1).trim()];
    }),
  );
  const rest = bytes.subarray(headEnd + 4);
  if (headers.get("transfer-encoding") === "chunked") {
    const body = parseChunks(rest);
    return body && { status, headers, body };
  }
  const length = Number(headers.get("content-length") ?? 0);
  return rest.length < length ? undefined : { status, headers, body: rest.subarray(0, length) };
}

/** The body; `undefined` until the last chunk is there. */
function parseChunks(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const end = lineEnd + 2 + size;
    if (lineEnd < 0 || bytes.length < end + 2) return undefined;
    if (size === 0) return Buffer.concat(parts);
    parts.push(bytes.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}

export type Caller = Pick<RunningService, "call">;

/**
 * Calls a service that may go away and come back. A lost response becomes a 503 with an unknown
 * outcome, so that clients try again. `pickPort` says where the next request goes, or 0 while there
 * is nobody; `onCutShort` hears of responses that ended in the middle.
 */
export function makeSteadyCaller(options: {
  readonly pickPort: () => number;
  readonly isSecure?: boolean;
  readonly onCutShort?: (port: number, text: string) => unknown;
}): Caller {
  const { pickPort, isSecure = false, onCutShort } = options;
  const idle: { port: number; connection: KeptConnection }[] = [];

  async function connect() {
    const port = pickPort();
    if (port === 0) return undefined;
    const at = idle.findLastIndex((each) => each.port === port && !each.connection.isOver);
    if (at >= 0) return idle.splice(at, 1)[0];
    const connection = await KeptConnection.open({ port, isSecure }).catch(() => undefined);
    return connection && { port, connection };
  }

  const call: Caller["call"] = async (line, { token = "", headers = {}, body } = {}) => {
    const given = { token, headers: headers as Record<string, string> };
    const text = writeRequest(line, { ...given, body: body ? `${body}` : undefined });
    const opened = await waitFor(connect);
    try {
      const { status, headers, body } = await opened.connection.ask(text);
      if (!opened.connection.isOver) idle.push(opened);
      return new Response(status === 204 ? null : new Uint8Array(body), { status, headers });
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      const text = `cut short: ${line}: ${error.message}`;
      if (error.hasBegun) await onCutShort?.(opened.port, text);
      return new Response("No response came, so the outcome is unknown.", { status: 503 });
    }
  };
  return { call };
}
