/** Services that break the contract in many ways: the check finds the rows, and only those. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { contract, runCheck, type Tokens } from "../../src/check/run-check.ts";
import { makeToken, type RunningService, startService } from "../end-to-end/running-service.ts";
import { changing, emptyResponse, openBrokenService, type Serve } from "./broken-service.ts";

setDefaultTimeout(120_000);

let service: RunningService;
let tokens: Tokens;

beforeAll(async () => {
  service = await startService();
  const read = await makeToken(service, "ann", "--scope", "read");
  tokens = {
    write: await makeToken(service, "ann"),
    second: await makeToken(service, "bob"),
    read,
  };
});

afterAll(() => service[Symbol.asyncDispose]());

async function check(serve: Serve, topic?: string) {
  using broken = openBrokenService(service.url, tokens, serve);
  const rows = contract.filter((row) => topic === undefined || row.topic === topic);
  const { signal } = new AbortController();
  const options = { url: broken.url.origin, tokens, rows, isSlow: false, signal };
  const result = await runCheck(options);
  const failed = result.results.filter(({ outcome }) => outcome === "failed");
  return { ...result, failed: failed.map(({ rule }) => rule) };
}

/** What is wrong, by topic, and the rows that say so. */
const flaws: Readonly<Record<string, readonly [what: string, serve: Serve, ...rows: string[]]>> = {
  idempotency: [
    "does not say where a plant is when it replays",
    changing(({ headers }) => {
      if (headers.has("Idempotency-Replayed")) headers.delete("Location");
    }),
    "the same key and request give the same response, with Idempotency-Replayed: true",
    "retries at the same time create one plant",
  ],
  delete: [
    "deletes in any garden",
    (request, forward, { write }) => {
      if (request.method === "DELETE") request.headers.set("Authorization", `Bearer ${write}`);
      return forward(request);
    },
    "a plant of another garden is 404 in the same way, and stays",
  ],
  preconditions: [
    "ignores If-Match on a delete",
    (request, forward) => {
      if (request.method === "DELETE") request.headers.delete("If-Match");
      return forward(request);
    },
    "PUT and DELETE with an If-Match that doesn't match are 412, and change nothing",
    "a malformed precondition is 400 and named",
  ],
  tokens: [
    "reads tokens from the query",
    (request, forward) => {
      const [parameter, token] = /access_token=(\w+)&/.exec(request.target) ?? [];
      if (parameter === undefined) return forward(request);
      const target = request.target.replace(parameter, "");
      request.headers.set("Authorization", `Bearer ${token}`);
      return forward({ ...request, target });
    },
    "a token in the query or in the body is not read",
  ],
  health: [
    "is never ready",
    async (request, forward) =>
      request.target === "/readyz" ? emptyResponse(503) : forward(request),
    "/healthz and /readyz are 200",
  ],
};

for (const [topic, [what, serve, ...rows]] of Object.entries(flaws)) {
  test(`${topic}: the check finds a service that ${what}`, async () => {
    expect((await check(serve, topic)).failed).toEqual(rows);
  });
}

test("a proxy may block /metrics", async () => {
  const { failed, leftBehind, results } = await check(
    async (request, forward) =>
      request.target === "/metrics" ? emptyResponse(403) : forward(request),
    "health",
  );
  expect([failed, leftBehind]).toEqual([[], []]);
  expect(results.map(({ reason }) => reason)).toContain("a proxy blocks /metrics");
});

test("a wrong response without a request id is reported as perhaps from a proxy", async () => {
  const { results } = await check(flaws.health?.[1] as Serve, "health");
  expect(results[0]?.reason).toBe(
    "the status must be 200, and is 503 (without X-Request-Id: perhaps from a proxy)",
  );
});

test("no row passes where every response is empty", async () => {
  // How the check looks into its gardens.
  const isOfGardens = /^GET \/plants\?(?:limit=1&)?include=id$/;
  const { results } = await check(async (request, forward) =>
    isOfGardens.test(`${request.method} ${request.target}`) ? forward(request) : emptyResponse(299),
  );
  const passed = results.filter(({ outcome }) => outcome === "passed");
  // Bun refuses those before the broken service sees them.
  expect(passed.map(({ rule }) => rule)).toEqual(["headers of more than 16 KiB are refused"]);
});
