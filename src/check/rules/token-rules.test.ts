/** Rules of tokens, where the token is not one of the service's own. */
import { expect, test } from "bun:test";
import { runCheck } from "../run-check.ts";
import { tokenRules } from "./token-rules.ts";

test("a JWT may be written in several ways, by its last character, and is the same", async () => {
  // Of 64 bytes, as a signature is: four bits of the last character are none of them.
  const token = Buffer.alloc(64, 1).toString("base64url");
  const signatureOf = (text: string) => Buffer.from(text, "base64url").toString("hex");
  using service = Bun.serve({
    port: 0,
    fetch({ headers, method }) {
      const given = headers.get("authorization")?.replace("Bearer ", "") ?? "";
      if (signatureOf(given) !== signatureOf(token)) return new Response("", { status: 401 });
      return method === "GET" ? Response.json([]) : new Response("", { status: 404 });
    },
  });
  const { results } = await runCheck({
    url: service.url.origin,
    tokens: { first: token },
    rules: tokenRules.filter(({ name }) => name === "a token with one character changed is 401"),
    timeoutMs: 5_000,
    isSlow: false,
    signal: new AbortController().signal,
  });
  expect(token).toEndWith("Q");
  expect(results).toMatchObject([{ outcome: "passed" }]);
});
