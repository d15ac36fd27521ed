/**
 * The client and responses that the real service cannot be made to send: retries, gateways, other
 * programs.
 */
import assert from "node:assert/strict";
import { PlantStoreProblem } from "../../client/plant-store.ts";
import { pause } from "../../client/send.ts";
import { type ClientCases, collect, failure, forEach, openStore, scripted } from "./client-case.ts";
import { createdAnswer, problemAnswer } from "./scripted-service.ts";

const draft = { name: "Fern" };
const busy = problemAnswer(503, "unavailable");
const missing = problemAnswer(404, "not-found");
const expired = problemAnswer(401, "unauthenticated");

/** A refusal for now, and how long the client is asked to wait. */
const limited = (retryAfter: string) =>
  problemAnswer(429, "rate-limited", { "retry-after": retryAfter });

/** What is no response of Plant Store, whatever was asked for. */
const strange = [
  { status: 200, headers: { "content-type": "text/html" }, body: "<html>Sign in</html>" },
  { status: 200, body: "" },
  { status: 201, body: "{}" },
  { status: 201, headers: { location: "/plants/7" }, body: '{"name":"Fern"}' },
  { ...createdAnswer, headers: { location: "/plants/0x7" } },
  { status: 200, body: '[{"name":"Fern","tag":"shade"}]' },
  { status: 200, body: '[{"id":"","name":"Fern","tag":"shade"}]' },
  { status: 200, body: '[{"id":7,"name":"Fern","tag":null}]' },
  { status: 200, body: '{"status":201,"id":1}\n' },
  { status: 404, body: "nothing here" },
  ...[
    '{"type":"about:blank","title":"Not Found","status":404}',
    '{"type":"urn:plantstore:problem:invalid-request","detail":"d","errors":[null]}',
    '{"type":7}',
    "null",
  ].map((body) => ({
    status: 400,
    headers: { "content-type": "application/problem+json" },
    body,
  })),
];

const pageOf = (body: string, after: string | number) => ({
  status: 200,
  headers: { link: `<http://other.invalid/x?limit=1&after=${after}>; rel="next"` },
  body,
});
const someTags = '[{"tag":"b","plants":1}]';

export const scriptedCases: ClientCases = {
  "tries again after a 408, a 429 and what gateways send, with the same key": forEach(
    [408, 429, 502, 503, 504].map((status) => problemAnswer(status, "unavailable")),
    (answer) =>
      scripted([answer, answer, createdAnswer], async (store, { requests }) => {
        assert.equal((await store.create(draft)).id, 7n);
        const keys = requests.map(({ headers }) => headers["idempotency-key"]);
        assert.deepEqual(keys, [keys[0], keys[0], keys[0]]);
      }),
  ),

  "does not try again after any other refusal": forEach(
    [400, 401, 403, 404, 409, 413, 422, 500, 507],
    (status) =>
      scripted([problemAnswer(status, "internal"), createdAnswer], async (store, { requests }) => {
        assert.equal((await failure(store.create(draft), PlantStoreProblem)).status, status);
        assert.equal(requests.length, 1);
      }),
  ),

  "gives up with the last problem and its key after its tries": scripted(
    [busy],
    async (store, { requests }) => {
      const problem = await failure(store.create(draft), PlantStoreProblem);
      assert.deepEqual([problem.status, problem.code], [503, "unavailable"]);
      assert.equal(requests.length, 3);
      assert.equal(problem.idempotencyKey, requests[0]?.headers["idempotency-key"]);
    },
    { retries: 2 },
  ),

  "throws at once when it is asked to wait for longer than it may": scripted(
    [limited("61"), limited("2"), createdAnswer],
    async (store, { url, requests }) => {
      const first = await failure(store.create(draft), PlantStoreProblem);
      const hasty = openStore({ url, token: "t" }, { retryAfterMsMax: 1_000 });
      const second = await failure(hasty.create(draft), PlantStoreProblem);
      assert.deepEqual([first.retryAfterMs, second.retryAfterMs], [61_000, 2_000]);
      assert.equal(requests.length, 2);
    },
  ),

  "counts tries that came too soon separately from failed ones": scripted(
    [limited("0"), limited("0"), limited("0"), createdAnswer],
    async (store, { url }) => {
      assert.equal((await failure(store.create(draft), PlantStoreProblem)).status, 429);
      const patient = openStore({ url, token: "t" }, { retries: 0, limitedRetries: 2 });
      assert.equal((await patient.create(draft)).id, 7n);
    },
    { retries: 9, limitedRetries: 1 },
  ),

  "takes a 404 for a plant that is gone only if it is Plant Store's, after a lost try": scripted(
    [limited("0"), missing, busy, { status: 404, body: "404 page not found" }, busy, missing],
    async (store) => {
      assert.equal((await failure(store.delete(7), PlantStoreProblem)).code, "not-found");
      assert.equal((await failure(store.delete(7), PlantStoreProblem)).code, "unexpected");
      assert.deepEqual(await store.delete(7), { confirmed: false });
    },
  ),

  "does not follow a redirect, which might leak the token": scripted(
    [{ status: 307, headers: { location: "/elsewhere" } }, createdAnswer],
    async (store, { requests }) => {
      const problem = await failure(store.create(draft), PlantStoreProblem);
      assert.deepEqual([problem.status, problem.code], [307, "unexpected"]);
      assert.equal(requests.length, 1);
    },
  ),

  "follows a link at its own address, also from an empty page, and never in a circle": scripted(
    [pageOf("[]", 9), pageOf('[{"id":7,"name":"Fern","tag":""}]', 9), pageOf(someTags, "b")],
    async (store, { requests }) => {
      const list = collect(store.list({ q: "fern" }));
      assert.equal((await failure(list, PlantStoreProblem)).code, "unexpected");
      const tags = collect(store.tags({ after: "b" }));
      assert.equal((await failure(tags, PlantStoreProblem)).code, "unexpected");
      assert.deepEqual(
        requests.map(({ url }) => url),
        [
          "/plants?limit=1000&include=id&q=fern",
          "/plants?limit=1000&include=id&after=9&q=fern",
          "/tags?limit=1000&after=b",
        ],
      );
    },
  ),

  "asks for a token before the first call and after a 401, once for all calls": scripted(
    [createdAnswer, expired, expired, createdAnswer, createdAnswer, expired, expired],
    async (_, { url, requests }) => {
      const asked: string[] = [];
      const store = openStore(
        { url, token: "" },
        {
          token: async () => {
            asked.push(`t${asked.length + 1}`);
            // Until both calls have been refused.
            while (asked.length === 2 && requests.length < 3) await pause(5, undefined);
            return asked.at(-1);
          },
        },
      );
      await store.create(draft);
      await Promise.all([store.create(draft), store.create(draft)]);
      assert.deepEqual(asked, ["t1", "t2"]);
      // A new token that is refused, too, is the caller's problem.
      assert.equal((await failure(store.create(draft), PlantStoreProblem)).status, 401);
      assert.deepEqual(
        requests.map(({ headers }) => headers.authorization?.slice("Bearer ".length)),
        ["t1", "t1", "t1", "t2", "t2", "t2", "t3"],
      );
    },
  ),

  "asks for a token again after it got none": scripted([createdAnswer], async (_, { url }) => {
    const tokens = [() => Promise.reject(new RangeError("no sign-in")), () => undefined, () => "t"];
    const store = openStore({ url, token: "" }, { token: () => tokens.shift()?.() });
    await failure(store.create(draft), RangeError);
    await failure(store.create(draft), TypeError);
    assert.equal((await store.create(draft)).id, 7n);
  }),

  "remembers a lost response while it asks for a token": scripted(
    [busy, expired, missing],
    async (_, { url }) => {
      const store = openStore({ url, token: "" }, { token: () => "t" });
      assert.deepEqual(await store.delete(7), { confirmed: false });
    },
  ),

  "reports that something else responded": forEach(strange, (answer) =>
    scripted([answer], async (store) => {
      for (const call of [
        () => collect(store.list()),
        () => store.get(1),
        () => store.create(draft),
        () => store.createMany([draft, draft]),
        () => store.put(1, draft),
        () => store.update(1, draft),
        () => store.delete(1),
        () => store.deleteMany([1]),
        () => collect(store.tags()),
      ]) {
        const { code } = await failure(call(), PlantStoreProblem);
        assert.deepEqual([answer.body, code], [answer.body, "unexpected"]);
      }
    }),
  ),

  "takes a token as it was copied, and an address with a base path": scripted(
    [createdAnswer],
    async (_, { url, requests }) => {
      await openStore({ url: `${url}/v1`, token: " Bearer t\n" }).create(draft);
      await openStore({ url: `${url}/v1/`, token: "bearer  t" }).create(draft);
      assert.deepEqual(
        requests.map((request) => [request.url, request.headers.authorization]),
        Array(2).fill(["/v1/plants", "Bearer t"]),
      );
    },
  ),
};
