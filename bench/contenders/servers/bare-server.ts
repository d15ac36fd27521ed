/**
 * Repeats the response that was recorded for a request's method. It reads a body, as any service
 * must, and does nothing else.
 */
import { readFileSync } from "node:fs";
import type { ResponsesByMethod } from "../bare.ts";

const [port = "", path = ""] = process.argv.slice(2);
const responses = JSON.parse(readFileSync(path, "utf8")) as ResponsesByMethod;

type Handler = (request: Request) => Response | Promise<Response>;

const handlers: Record<string, Handler> = {};
for (const [method, { status, headers, body }] of Object.entries(responses)) {
  const init = { status, headers: new Headers(headers) };
  const content = status === 204 ? null : body;
  handlers[method] =
    method === "POST" || method === "PUT"
      ? async (request) => {
          await request.text();
          return new Response(content, init);
        }
      : () => new Response(content, init);
}

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  development: false,
  routes: {
    "/plants": handlers,
    "/plants/:id": handlers,
    "/healthz": () => new Response("ok\n"),
  },
  fetch: () => new Response("Not found", { status: 404 }),
});
