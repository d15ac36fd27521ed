/** A service with one flaw: stands before the real one, and changes what goes in or comes out. */
import { createServer, type Socket } from "node:net";
import type { Tokens } from "../../src/check/run-check.ts";
import { exchange, NoResponse, type RawResponse } from "../../src/check/wire.ts";

export interface RawRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: RawResponse["headers"];
  /** With the marks of chunks, if it came in chunks. */
  readonly body: Buffer;
}

export type Forward = (request: RawRequest) => Promise<RawResponse>;

/** How a broken service answers; `forward` has the real one answer. */
export type Serve = (request: RawRequest, forward: Forward, tokens: Tokens) => Promise<RawResponse>;

export interface BrokenService {
  readonly url: string;
  close(): void;
}

/** A request whose body stays away is passed on after this. */
const silenceMs = 30;
const timeoutMs = 5_000;

export async function openBrokenService(
  target: string,
  tokens: Tokens,
  serve: Serve,
): Promise<BrokenService> {
  const { hostname: host, port, pathname } = new URL(target);
  const place = { host, port: Number(port), isSecure: false };
  const forward: Forward = async (request) => {
    const options = { isHead: request.method === "HEAD", timeoutMs };
    const response = await exchange(place, renderRequest(request), options);
    if (response instanceof NoResponse) throw response;
    return response;
  };

  const server = createServer((socket) => {
    let received = Buffer.alloc(0);
    let timer: Timer | undefined;
    const answer = async () => {
      clearTimeout(timer);
      socket.removeAllListeners("data");
      const request = parseRequest(received);
      socket.end(renderAnswer(await serve(request, forward, tokens), request.method));
    };
    socket.on("data", (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      clearTimeout(timer);
      if (isWhole(received)) answer().catch(() => socket.destroy());
      else timer = setTimeout(() => answer().catch(() => socket.destroy()), silenceMs);
    });
    socket.on("error", (_error: Error) => (socket as Socket).destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}${pathname.replace(/\/$/, "")}`,
    close: () => server.close(),
  };
}

export function headerOf(
  { headers }: Pick<RawRequest, "headers">,
  wanted: string,
): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1];
}

function isWhole(bytes: Buffer): boolean {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return false;
  const request = parseRequest(bytes);
  if (headerOf(request, "transfer-encoding")) return bytes.toString().endsWith("\r\n0\r\n\r\n");
  return request.body.length >= Number(headerOf(request, "content-length") ?? 0);
}

function parseRequest(bytes: Buffer): RawRequest {
  const headEnd = bytes.indexOf("\r\n\r\n");
  const [line = "", ...lines] = bytes.toString("latin1", 0, headEnd).split("\r\n");
  const [method = "", target = ""] = line.split(" ");
  const headers = lines.map((text) => {
    const colonAt = text.indexOf(":");
    return [text.slice(0, colonAt), text.slice(colonAt + 1).trim()] as const;
  });
  return { method, target, headers, body: bytes.subarray(headEnd + 4) };
}

function renderRequest({ method, target, headers, body }: RawRequest): Buffer {
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  const head = [`${method} ${target} HTTP/1.1`, ...lines, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}

/** The length is that of the body as it is now, but of an answer to HEAD. */
function renderAnswer({ status, headers, body, surplus }: RawResponse, method: string): Buffer {
  const isFramed = method !== "HEAD" && status !== 204;
  const kept = headers.filter(
    ([name]) => !isFramed || !/^(?:content-length|transfer-encoding)$/i.test(name),
  );
  const lines = kept.map(([name, value]) => `${name}: ${value}`);
  if (isFramed) lines.push(`Content-Length: ${body.length}`);
  const head = [`HTTP/1.1 ${status} Whatever`, ...lines, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), body, surplus]);
}
