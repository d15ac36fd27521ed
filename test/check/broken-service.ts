/** A proxy in front of the real service that changes requests or responses, to break one thing. */
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

/** How the broken service responds; `forward` asks the real one. */
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
    const respond = async () => {
      clearTimeout(timer);
      socket.removeAllListeners("data");
      const request = parseRequest(received);
      socket.end(renderResponse(await serve(request, forward, tokens), request.method));
    };
    socket.on("data", (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      clearTimeout(timer);
      if (isWhole(received)) respond().catch(() => socket.destroy());
      else timer = setTimeout(() => respond().catch(() => socket.destroy()), silenceMs);
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

/** The real service, with its responses changed. */
export function changing(change: (response: RawResponse) => RawResponse): Serve {
  return async (request, forward) => change(await forward(request));
}

export function emptyResponse(status: number): RawResponse {
  return { status, headers: [], body: Buffer.alloc(0), surplus: Buffer.alloc(0) };
}

type Message = Pick<RawRequest, "headers" | "body">;

export function headerOf({ headers }: Message, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted.toLowerCase())?.[1];
}

/** `undefined` removes the header. */
export function withHeader<Changed extends Message>(
  message: Changed,
  name: string,
  value: string | undefined,
): Changed {
  const others = message.headers.filter(([other]) => other.toLowerCase() !== name.toLowerCase());
  return { ...message, headers: value === undefined ? others : [...others, [name, value]] };
}

/** Replaces text in the body. */
export function replaceText<Changed extends Message>(
  message: Changed,
  pattern: string | RegExp,
  replacement: string,
): Changed {
  const body = Buffer.from(message.body.toString().replace(pattern, replacement));
  if (body.equals(message.body)) return message;
  return withHeader({ ...message, body }, "Content-Length", String(body.length));
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

/** With the length of the body as it is now, except in a response to HEAD. */
function renderResponse({ status, headers, body, surplus }: RawResponse, method: string): Buffer {
  const isFramed = method !== "HEAD" && status !== 204;
  const kept = headers.filter(
    ([name]) => !isFramed || !/^(?:content-length|transfer-encoding)$/i.test(name),
  );
  const lines = kept.map(([name, value]) => `${name}: ${value}`);
  if (isFramed) lines.push(`Content-Length: ${body.length}`);
  const head = [`HTTP/1.1 ${status} Whatever`, ...lines, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), body, surplus]);
}
