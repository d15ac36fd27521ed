/** One HTTP/1.1 exchange over its own socket, byte for byte: no redirects, no corrections. */
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly isSecure: boolean;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** What came after the end of the response, such as a body where there must be none. */
  readonly surplus: Buffer;
}

/** No complete HTTP response came; the message says why. */
export class NoResponse extends Error {
  /** `code` is the system's, such as `ECONNREFUSED`; `request` is what was sent. */
  constructor(
    message: string,
    readonly code?: string,
    readonly request = "",
  ) {
    super(message);
  }
}

interface Reading {
  readonly isHead: boolean;
  /** Nothing more will come. */
  readonly isEnded: boolean;
  /** A body in chunks is complete with this text. */
  readonly until?: string | undefined;
}

const noBytes: Buffer = Buffer.alloc(0);

/** How long to wait for a body where there must be none. */
const surplusWaitMs = 150;

/** Resolves with `NoResponse` where there is none. */
export function exchange(
  address: Address,
  request: Uint8Array,
  { timeoutMs, ...reading }: Omit<Reading, "isEnded"> & { readonly timeoutMs: number },
): Promise<RawResponse | NoResponse> {
  return new Promise((resolve) => {
    let received = noBytes;
    const settle = (outcome: RawResponse | NoResponse) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const parse = (isEnded: boolean, error?: Error & { code?: string }) => {
      const response = parseResponse(received, { ...reading, isEnded });
      if (response instanceof NoResponse)
        settle(error ? new NoResponse(error.message, error.code) : response);
      else if (response && (isEnded || mayHaveBody(response.status, reading.isHead)))
        settle(response);
      else if (response) setTimeout(() => parse(true), surplusWaitMs);
    };
    const message = `no complete response within ${timeoutMs / 1_000} seconds`;
    const timer = setTimeout(() => settle(new NoResponse(message)), timeoutMs);
    const socket = open(address, () => socket.write(request));
    socket.on("data", (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      parse(false);
    });
    socket.on("close", () => parse(true));
    socket.on("end", () => parse(true));
    // A response may have come before the connection broke.
    socket.on("error", (error) => parse(true, error));
  });
}

function open({ host, port, isSecure }: Address, begin: () => void): Socket {
  if (!isSecure) return connectPlain({ host, port }, begin);
  const name = isIP(host) === 0 ? { servername: host } : {};
  return connectTls({ host, port, ALPNProtocols: ["http/1.1"], ...name }, begin);
}

function mayHaveBody(status: number, isHead: boolean): boolean {
  return !isHead && status !== 204 && status !== 304;
}

/** The first response in the bytes; `undefined` until it is complete. */
export function parseResponse(
  bytes: Buffer,
  reading: Reading,
): RawResponse | NoResponse | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) {
    if (!reading.isEnded) return undefined;
    const what = bytes.length === 0 ? "without a response" : "in the middle of the headers";
    return new NoResponse(`the connection was closed ${what}`);
  }
  const [statusLine = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(statusLine)?.[1]);
  if (Number.isNaN(status)) return new NoResponse(`the response is not HTTP/1.1: ${statusLine}`);
  const rest = bytes.subarray(headEnd + 4);
  // An interim response, such as 100 Continue, comes before the final one.
  if (status < 200) return parseResponse(rest, reading);
  const headers = lines.map((line) => {
    const colonAt = line.indexOf(":");
    return [line.slice(0, colonAt), line.slice(colonAt + 1).trim()] as const;
  });
  const find = (wanted: string) => headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
  const respond = (body: Buffer, surplus = noBytes) => ({ status, headers, body, surplus });
  if (!mayHaveBody(status, reading.isHead)) return respond(noBytes, rest);
  const brokenOff = reading.isEnded
    ? new NoResponse("the response broke off before its end")
    : undefined;
  if (find("transfer-encoding")?.toLowerCase() === "chunked") {
    const chunked = parseChunks(rest, reading.until);
    return chunked ? respond(...chunked) : brokenOff;
  }
  const length = find("content-length");
  if (length === undefined) return reading.isEnded ? respond(rest) : undefined;
  if (rest.length < Number(length)) return brokenOff;
  return respond(rest.subarray(0, Number(length)), rest.subarray(Number(length)));
}

/** The body and what comes after it; `undefined` until the last chunk, or the text, is there. */
function parseChunks(
  bytes: Buffer,
  until: string | undefined,
): [body: Buffer, surplus: Buffer] | undefined {
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
    const body = until === undefined ? noBytes : Buffer.concat(parts);
    if (until !== undefined && body.includes(until)) return [body, noBytes];
  }
}
