/** Services that break the contract, one for each topic: the check finds the row, and only that. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { contract, runCheck, type Tokens, topics } from "../../src/check/run-check.ts";
import { makeToken, type RunningService, startService } from "../end-to-end/running-service.ts";
import {
  changing,
  emptyResponse,
  headerOf,
  openBrokenService,
  replaceText,
  type Serve,
  withHeader,
} from "./broken-service.ts";

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
  const broken = await openBrokenService(service.url, tokens, serve);
  const rows = contract.filter((row) => topic === undefined || row.topic === topic);
  const { signal } = new AbortController();
  const options = { url: broken.url, tokens, rows, isSlow: false, signal };
  const result = await runCheck(options);
  broken.close();
  const failed = result.results.filter(({ outcome }) => outcome === "failed");
  return { ...result, failed: failed.map(({ rule }) => rule) };
}

/** What is wrong, by topic, and the rows that say so. */
const flaws: Readonly<Record<string, readonly [what: string, serve: Serve, ...rows: string[]]>> = {
  surface: [
    "has no HEAD",
    async (request, forward) => (request.method === "HEAD" ? emptyResponse(404) : forward(request)),
    "HEAD /plants is as GET, without a body",
    "GET and HEAD of a public path need no token, and are alike but for the body",
  ],
  requests: [
    "ignores unknown query parameters",
    (request, forward) => forward({ ...request, target: request.target.replace(/&?\w*=3/, "") }),
    "an unknown query parameter is 400 and named",
  ],
  plant: [
    "trims names",
    (request, forward) => forward(replaceText(request, '"name":" Fern \\n"', '"name":"Fern"')),
    "strings are kept as sent: not trimmed, normalised or escaped",
  ],
  create: [
    "does not say where a plant is",
    changing((response) => withHeader(response, "Location", undefined)),
    "a create is 201, with Location, the name and the tag, and nothing else",
  ],
  idempotency: [
    "does not say where a plant is when it replays",
    changing((response) =>
      headerOf(response, "Idempotency-Replayed")
        ? withHeader(response, "Location", undefined)
        : response,
    ),
    "the same key and request give the same response, with Idempotency-Replayed: true",
    "retries at the same time create one plant",
  ],
  "many at once": [
    "stops at the first line that is refused",
    async (request, forward) => {
      if (!headerOf(request, "Content-Type")?.includes("jsonl")) return forward(request);
      const response = await forward(request);
      return replaceText(response, /(\{"status":4\d\d.*\n)[\s\S]*/, "$1");
    },
    "a line that is refused stops no other",
    "a line break at the end is optional, and any other empty line is not an object",
    "another line with the same key and number is 422, and creates nothing",
    "a line that was refused is not remembered",
    "10,000 lines are taken, and one more is 413",
  ],
  list: [
    "forgets fields on the way to the next page",
    changing((response) => {
      const link = headerOf(response, "Link");
      return withHeader(response, "Link", link?.replace(/&fields=[\w,]+/, ""));
    }),
    "Link keeps fields",
  ],
  tag: [
    "takes a tag for the beginning of one",
    (request, forward) =>
      forward({ ...request, target: request.target.replace("=shad&", "=shade&") }),
    "tag lists the plants with exactly this tag, by ascending id",
  ],
  get: [
    "rounds ids",
    (request, forward) => {
      const target = request.target.replace(/(?<=^\/plants\/)\d{18,}/, (id) => `${Number(id)}`);
      return forward(request.method === "GET" ? { ...request, target } : request);
    },
    "a plant is found exactly beyond 2^53",
  ],
  delete: [
    "deletes in any garden",
    (request, forward, { write }) =>
      request.method === "DELETE"
        ? forward(withHeader(request, "Authorization", `Bearer ${write}`))
        : forward(request),
    "a plant of another garden is 404 in the same way, and stays",
  ],
  put: [
    "ignores the id in the body of a put",
    (request, forward) =>
      forward(request.method === "PUT" ? replaceText(request, /,"id":\d+/, "") : request),
    "an id in the body must be the one in the path",
    "name and tag have the rules of a create",
  ],
  preconditions: [
    "ignores If-Match on a delete",
    (request, forward) =>
      forward(request.method === "DELETE" ? withHeader(request, "If-Match", undefined) : request),
    "PUT and DELETE with an If-Match that doesn't match are 412, and change nothing",
    "If-Match on a plant that isn't there is 412",
    "a malformed precondition is 400 and named",
  ],
  tokens: [
    "reads tokens from the query",
    (request, forward) => {
      const [parameter, token] = /access_token=(\w+)&/.exec(request.target) ?? [];
      if (parameter === undefined) return forward(request);
      const target = request.target.replace(parameter, "");
      return forward(withHeader({ ...request, target }, "Authorization", `Bearer ${token}`));
    },
    "a token in the query or in the body is not read",
  ],
  me: [
    "says that every token may write",
    changing((response) => replaceText(response, '"scope":"read"', '"scope":"write"')),
    "/me shows that a token may only read",
  ],
  errors: [
    "has no request id in problems",
    changing((response) => replaceText(response, /,"requestId":"[^"]*"/, "")),
    "every refusal is a problem with type, title, status, detail and requestId",
    "403 is such a problem, too",
  ],
  "browser clients": [
    "lets caches keep plants",
    changing((response) => withHeader(response, "Cache-Control", undefined)),
    "responses that depend on a token have Cache-Control: no-store",
  ],
  limits: [
    "takes one byte too little",
    async (request, forward) =>
      request.body.length === 64 * 1024 ? emptyResponse(413) : forward(request),
    "a body of 64 KiB is taken",
  ],
  health: [
    "is never ready",
    async (request, forward) =>
      request.target === "/readyz" ? emptyResponse(503) : forward(request),
    "/healthz and /readyz are 200",
  ],
  openapi: [
    "is described by OpenAPI 3.0",
    changing((response) => replaceText(response, /"openapi": ?"3\.1/, '"openapi":"3.0')),
    "/openapi.json is OpenAPI 3.1, with a version, the operations and the bearer token",
  ],
};

test("every topic has a broken service", () => {
  expect(Object.keys(flaws)).toEqual([...topics]);
});

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
  const isOfGardens = /[?&]fields=id,name(?:&|$)/;
  const { results } = await check(async (request, forward) => {
    // What was never created is gone, so that cleaning up does not go on and on.
    if (request.method === "DELETE") return emptyResponse(404);
    return isOfGardens.test(request.target) ? forward(request) : emptyResponse(299);
  });
  const passed = results.filter(({ outcome }) => outcome === "passed");
  expect(passed.map(({ rule }) => rule)).toEqual([]);
});
