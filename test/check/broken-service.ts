/** A proxy in front of the real service that changes requests or responses, to break one thing. */
import type { Tokens } from "../../src/check/run-check.ts";

/** A request that can be changed. */
export interface SentRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Headers;
  /** Waits for it, and some rows send none. */
  readonly readBody: () => Promise<ArrayBuffer>;
}

export type Forward = (request: SentRequest) => Promise<Response>;

/** How the broken service responds; `forward` asks the real one. */
export type Serve = (request: SentRequest, forward: Forward, tokens: Tokens) => Promise<Response>;

export function openBrokenService(url: string, tokens: Tokens, serve: Serve) {
  const forward: Forward = async ({ method, target, headers, readBody }) => {
    const body = await readBody();
    const sent = body.byteLength > 0 ? { method, headers, body } : { method, headers };
    const response = await fetch(url + target, { ...sent, redirect: "manual" });
    return new Response(response.body, response);
  };
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      // The URL of a request without a host is relative.
      const { pathname, search } = new URL(request.url, url);
      const { method, headers } = request;
      const readBody = () => request.arrayBuffer();
      return serve({ method, target: pathname + search, headers, readBody }, forward, tokens);
    },
  });
}

/** The real service, with its responses changed. */
export function changing(change: (response: Response) => void): Serve {
  return async (request, forward) => {
    const response = await forward(request);
    change(response);
    return response;
  };
}

export function emptyResponse(status: number): Response {
  return new Response(null, { status });
}
