/** The check against services that echo what they were sent, or limit the rate forever. */
import { expect, test } from "bun:test";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { rows } from "./rows/tokens.ts";
import { runCheck } from "./run-check.ts";

function check(url: string, write: string, signal = new AbortController().signal) {
  const options = { tokens: { write }, rows, isSlow: false, signal };
  return runCheck({ url, ...options });
}

test.each([
  ["of the service's own", `plant_${"Zx9".repeat(16)}q`],
  ["that is a long JWT", `eyJhbGciOiJSUzI1NiJ9.${"Zx9".repeat(300)}.${"Zx9".repeat(100)}`],
])("no part of a token is shown %s", async (_, token) => {
  using server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { method, headers } = request;
      if (method === "GET" && headers.get("authorization") === `Bearer ${token}`) {
        return Response.json([]);
      }
      const sent = `${request.url} ${headers.get("authorization")} ${await request.text()}`;
      return new Response(sent, { status: 418 });
    },
  });
  const { results } = await check(server.url.origin, token);
  const report = JSON.stringify(results);
  expect(results.filter(({ outcome }) => outcome === "failed").length).toBeGreaterThan(5);
  expect(report).toContain("access_token");
  expect(report).not.toContain("Zx9Zx9");
});

test("an interruption ends the wait for a rate limit", async () => {
  let requests = 0;
  using server = Bun.serve({
    port: 0,
    fetch() {
      requests++;
      return new Response("", { status: 429, headers: { "Retry-After": "50" } });
    },
  });
  const stopping = new AbortController();
  const checking = check(server.url.origin, "token", stopping.signal);
  await waitFor(() => requests || undefined);
  stopping.abort();
  expect(await checking).toMatchObject({ results: [], isInterrupted: true });
});
