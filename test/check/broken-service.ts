/** A proxy in front of the real service that changes requests or responses, to break one thing. */
import { createServer, type IncomingMessage } from "node:http";
import type { Tokens } from "../../src/check/run-check.ts";
import { exchange, NoResponse, type RawResponse } from "../../src/check/wire.ts";

export interface RawRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: RawResponse["headers"];
  readonly body: Buffer;
}

export type Forward = (request: RawRequest) => Promise<RawResponse>;

/** How the broken service responds; `forward` asks the real one. */
export type Serve = (request: RawRequest, forward: Forward, tokens: Tokens) => Promise<RawResponse>;

export interface BrokenService {
  readonly url: string;
  [Symbol.dispose](): void;
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

  const server = createServer({ maxHeaderSize: 64 * 1024 }, async (incoming, outgoing) => {
    try {
      const response = await serve(await readRequest(incoming), forward, tokens);
      outgoing.writeHead(response.status, response.headers.flat());
      outgoing.end(response.body);
    } catch {
      incoming.socket.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}${pathname.replace(/\/$/, "")}`,
    [Symbol.dispose]: () => void server.close(),
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

async function readRequest(incoming: IncomingMessage): Promise<RawRequest> {
  const { method = "", url: target = "", rawHeaders } = incoming;
  const headers = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ""] as const] : [],
  );
  const chunks: Buffer[] = [];
  await new Promise<void>((resolve) => {
    let timer: Timer | undefined;
    incoming.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      clearTimeout(timer);
      timer = setTimeout(resolve, silenceMs);
    });
    incoming.on("end", resolve);
  });
  const request = { method, target, headers, body: Buffer.concat(chunks) };
  if (!headerOf(request, "Transfer-Encoding")) return request;
  const whole = withHeader(request, "Content-Length", String(request.body.length));
  return withHeader(whole, "Transfer-Encoding", undefined);
}

function renderRequest({ method, target, headers, body }: RawRequest): Buffer {
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  const head = [`${method} ${target} HTTP/1.1`, ...lines, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}
