/** What a report says of a service that answers with what it was sent. */
import { expect, test } from "bun:test";
import { tokenRules } from "./rules/token-rules.ts";
import { runCheck } from "./run-check.ts";

test.each([
  ["of the service's own", `plant_${"Zx9".repeat(16)}q`],
  ["that is a long JWT", `eyJhbGciOiJSUzI1NiJ9.${"Zx9".repeat(300)}.${"Zx9".repeat(100)}`],
])("no part of a token is shown %s", async (_, first) => {
  using server = Bun.serve({
    port: 0,
    async fetch(request) {
      const { method, headers } = request;
      if (method === "GET" && headers.get("authorization") === `Bearer ${first}`) {
        return Response.json([]);
      }
      const sent = `${request.url} ${headers.get("authorization")} ${await request.text()}`;
      return new Response(sent, { status: 418 });
    },
  });
  const { results } = await runCheck({
    url: server.url.origin,
    tokens: { first },
    rules: tokenRules,
    timeoutMs: 5_000,
    isSlow: false,
    signal: new AbortController().signal,
  });
  const report = JSON.stringify(results);
  expect(results.filter(({ outcome }) => outcome === "failed").length).toBeGreaterThan(5);
  expect(report).toContain("access_token");
  expect(report).not.toContain("Zx9Zx9");
});
