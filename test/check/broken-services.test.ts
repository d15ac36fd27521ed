/** Services that break the contract, one for each topic: the check finds the row, and only that. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { contract, topics } from "../../src/check/contract.ts";
import { runCheck, type Tokens } from "../../src/check/run-check.ts";
import { type RunningService, runProgram, startService } from "../end-to-end/running-service.ts";
import { headerOf, openBrokenService, type Serve } from "./broken-service.ts";
import {
  answers,
  asks,
  drafts,
  isDelete,
  isOn,
  onStatus,
  rewrites,
  says,
  when,
  withHeader,
  without,
} from "./flaw.ts";

setDefaultTimeout(30_000);

let service: RunningService;
let tokens: Tokens;

beforeAll(async () => {
  service = await startService();
  const make = async (...args: string[]) =>
    (await runProgram(["token", "create", ...args, "--database", service.database])).out.trim();
  const read = await make("ann", "--scope", "read");
  tokens = { write: await make("ann"), second: await make("bob"), read };
});

afterAll(() => service[Symbol.asyncDispose]());

async function check(serve: Serve, topic?: string) {
  const broken = await openBrokenService(service.url, tokens, serve);
  const rows = contract.filter((row) => topic === undefined || row.topic === topic);
  const { signal } = new AbortController();
  const options = { url: broken.url, tokens, rows, timeoutMs: 5_000, isSlow: false, signal };
  const result = await runCheck(options);
  broken.close();
  const failed = result.results.filter(({ outcome }) => outcome === "failed");
  return { ...result, failed: failed.map(({ rule }) => rule) };
}

/** What is wrong, by topic, and the rows that say so. */
const flaws: Readonly<Record<string, readonly [what: string, serve: Serve, ...rows: string[]]>> = {
  surface: [
    "has no HEAD",
    when(({ method }) => method === "HEAD", says(404)),
    "HEAD /plants is as GET, without a body",
    "GET and HEAD of a public path need no token, and are alike but for the body",
  ],
  requests: [
    "ignores unknown query parameters",
    asks((request) => ({ ...request, target: request.target.replace(/&?\w*=3/, "") })),
    "an unknown query parameter is 400 and named",
  ],
  plant: [
    "trims names",
    drafts((draft) => ({ ...draft, name: draft.name.trim() })),
    "strings are kept as sent: not trimmed, normalised or escaped",
  ],
  create: [
    "does not say where a plant is",
    onStatus(201, without("Location")),
    "a create is 201, with Location, the name and the tag, and nothing else",
  ],
  idempotency: [
    "does not say where a plant is when it replays",
    answers((answer) =>
      headerOf(answer, "idempotency-replayed") ? without("Location")(answer) : answer,
    ),
    "the same key and request give the same response, with Idempotency-Replayed: true",
    "retries at the same time create one plant",
  ],
  list: [
    "forgets fields on the way to the next page",
    answers((answer) => {
      const link = headerOf(answer, "link");
      return link ? withHeader(answer, "Link", link.replace(/&fields=[\w,]+/, "")) : answer;
    }),
    "Link keeps fields",
  ],
  delete: [
    "deletes in any garden",
    when(isDelete, (request, forward, { write }) =>
      forward(withHeader(request, "Authorization", `Bearer ${write}`)),
    ),
    "a plant of another garden is 404 in the same way, and stays",
  ],
  tokens: [
    "reads tokens from the query",
    asks((request) => {
      const token = /access_token=(\w+)&/.exec(request.target)?.[1];
      const target = request.target.replace(`access_token=${token}&`, "");
      return token
        ? withHeader({ ...request, target }, "Authorization", `Bearer ${token}`)
        : request;
    }),
    "a token in the query or in the body is not read",
  ],
  errors: [
    "has no request id in problems",
    answers((answer) =>
      answer.status < 400 ? answer : rewrites(({ requestId: _, ...rest }) => rest)(answer),
    ),
    "every refusal is a problem with type, title, status, detail and requestId",
    "403 is such a problem, too",
  ],
  "browser clients": [
    "lets caches keep plants",
    answers(without("Cache-Control")),
    "responses that depend on a token have Cache-Control: no-store",
  ],
  limits: [
    "takes one byte too little",
    when(({ body }) => body.length === 64 * 1024, says(413)),
    "a body of 64 KiB is taken",
  ],
  health: [
    "is never ready",
    when(({ target }) => target === "/readyz", says(503)),
    "/healthz and /readyz are 200",
  ],
  openapi: [
    "is described by OpenAPI 3.0",
    when(
      isOn("GET", "/openapi.json"),
      answers(rewrites((document) => ({ ...document, openapi: "3.0.3" }))),
    ),
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

test("without a flaw, what stands before the service changes nothing", async () => {
  const { failed, leftBehind } = await check((request, forward) => forward(request));
  expect([failed, leftBehind]).toEqual([[], []]);
});

test("no row passes where every response is empty", async () => {
  const garden = /[?&]fields=id,name(?:&|$)/;
  const { results } = await check(
    when((request) => !garden.test(request.target) || request.target.includes("tag"), says(299)),
  );
  const passed = results.filter(({ outcome }) => outcome === "passed");
  expect(passed.map(({ rule }) => rule)).toEqual([]);
});
