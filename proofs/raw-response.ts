/** HTTP/1.1 responses byte for byte, as they come over a socket: nothing is corrected. */

export interface RawResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** What came after the end of the response. */
  readonly surplus: Buffer;
}

/** No complete HTTP response came; the message says why. */
export class NoResponse extends Error {}

const noBytes: Buffer = Buffer.alloc(0);

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
