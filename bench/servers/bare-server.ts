/**
 * Repeats the response that Plant Store gave to a request of the same method. It reads the body, as
 * any service must, and does nothing else.
 */
import { readFileSync } from "node:fs";
import type { RecordedResponse } from "../requests.ts";

const [port = "", path = ""] = process.argv.slice(2);
const recorded: Record<string, RecordedResponse> = JSON.parse(readFileSync(path, "utf8"));

const handlers: Record<string, (request: Request) => Response | Promise<Response>> = {};
for (const [method, { status, headers, body }] of Object.entries(recorded)) {
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
  routes: { "/plants": handlers, "/plants/*": handlers, "/readyz": () => new Response("ok\n") },
});
