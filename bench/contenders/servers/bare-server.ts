/**
 * Answers every request under /plants with the answer recorded for its method. It reads a body that
 * was sent, as any service must, and does nothing else. On several threads, if so many are asked
 * for.
 */
import { readFileSync } from "node:fs";
import type { AnswersByMethod } from "../bare.ts";

const [port = "", answersPath = "", threads = "1"] = process.argv.slice(2);
const answers = JSON.parse(readFileSync(answersPath, "utf8")) as AnswersByMethod;

type Handler = (request: Request) => Response | Promise<Response>;

const handlers: Record<string, Handler> = {};
for (const [method, { status, headers, body }] of Object.entries(answers)) {
  const init = { status, headers: new Headers(headers) };
  const content = status === 204 ? null : body;
  handlers[method] =
    method === "POST"
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
  reusePort: threads !== "1",
  routes: {
    "/plants": handlers,
    "/plants/:id": handlers,
    "/healthz": () => new Response("ok\n"),
  },
  fetch: () => new Response("Not found", { status: 404 }),
});

if (Bun.isMainThread) {
  for (let thread = 1; thread < Number(threads); thread++) {
    new Worker(import.meta.url, { argv: process.argv.slice(2) });
  }
}
