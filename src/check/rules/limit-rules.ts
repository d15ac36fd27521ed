/** Limits: how large a body and the headers may be, and how long a request may take to arrive. */
import { expectStatus, expectThat } from "../expectation.ts";
import { Unanswered } from "../line.ts";
import { Skipped } from "../outcome.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";

const bodyBytesMax = 64 * 1024;
const requestSecondsMax = 15;

/** A good plant, followed by white space up to a size. */
function padded(probe: Probe, bytes: number): string {
  return `{"name":"Fern","id":${probe.freshId()}}`.padEnd(bytes);
}

function withFiller(characters: number): { headers: Record<string, string> } {
  return { headers: { "X-Filler": "x".repeat(characters) } };
}

export const limitRules = rulesOf("limits", {
  "a body of 64 KiB is taken": async (probe) => {
    expectStatus(await probe.garden.create(padded(probe, bodyBytesMax)), 201);
  },
  "a declared length over 64 KiB is 413, before the body has come": async (probe) => {
    // Only the beginning is sent, so an answer shows that the service does not wait for the rest.
    const headers = { "Content-Length": String(bodyBytesMax + 1) };
    expectStatus(await probe.garden.create(padded(probe, 1_024), headers), 413);
  },
  "chunks over 64 KiB are 413, before the last has come": async (probe) => {
    const headers = { "Content-Length": [], "Transfer-Encoding": "chunked" };
    const body = padded(probe, bodyBytesMax + 1);
    const chunk = `${body.length.toString(16)}\r\n${body}\r\n`;
    expectStatus(await probe.garden.create(chunk, headers), 413);
  },
  "the token comes before the size of the body": async (probe) => {
    const headers = { "Content-Length": String(bodyBytesMax + 1) };
    expectStatus(await probe.askOpenly("POST /plants", { body: "{", headers }), 401);
  },
  "headers of 12 KiB are taken": async (probe) => {
    expectStatus(await probe.garden.ask("GET /plants?limit=1", withFiller(12 * 1024)), 200);
  },
  "headers of more than 16 KiB are refused": async (probe) => {
    expectStatus(await probe.garden.ask("GET /plants?limit=1", withFiller(20 * 1024)), 400, 431);
  },
  "a body that does not arrive within 15 seconds is given up": async (probe) => {
    if (!probe.isSlow) throw new Skipped("takes 15 seconds; ask for it with --slow");
    const headers = { "Content-Length": "100" };
    const timeoutMs = (requestSecondsMax + 10) * 1_000;
    const waiting = probe.garden.ask("POST /plants", { body: "{", headers, timeoutMs });
    const outcome = await waiting.catch((error: unknown) => error);
    if (outcome instanceof Unanswered) {
      expectThat(!outcome.message.includes("within"), "the service still waits after 25 seconds");
    } else if (outcome instanceof Error) throw outcome;
    else expectStatus(await waiting, 400, 408);
  },
  "RateLimit and a limit of requests in RateLimit-Policy come together": async ({ garden }) => {
    const answer = await garden.ask("GET /plants?limit=1");
    const [limit, policy] = [answer.header("RateLimit"), answer.header("RateLimit-Policy")];
    // A quota of plants has no window.
    const isLimited = /;w=/.test(policy ?? "");
    if (limit === undefined && !isLimited) throw new Skipped("no rate limit is on");
    expectThat(limit !== undefined && isLimited, "one is missing", answer);
  },
});
