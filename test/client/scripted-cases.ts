/**
 * The client and responses that the real service cannot be made to send: retries, gateways, other
 * programs.
 */
import assert from "node:assert/strict";
import { PlantStoreProblem } from "../../src/client/plant-store.ts";
import { type ClientCase, collect, failure, openStore } from "./client-case.ts";
import {
  createdAnswer,
  openScriptedService,
  problemAnswer,
  type ScriptedAnswer,
} from "./scripted-service.ts";

const draft = { name: "Fern" };

export function scripted(
  name: string,
  script: ScriptedAnswer[],
  check: (
    store: ReturnType<typeof openStore>,
    service: Awaited<ReturnType<typeof openScriptedService>>,
  ) => Promise<void>,
): ClientCase {
  return {
    name,
    async run(world) {
      const service = await openScriptedService(...script);
      try {
        await check(openStore(world, { url: service.url }), service);
      } finally {
        service.close();
      }
    },
  };
}

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toUTCString();

export const scriptedCases: readonly ClientCase[] = [
  ...[429, 502, 503, 504].map((status) =>
    scripted(
      `tries again after ${status}, with the same key`,
      [problemAnswer(status, "unavailable"), problemAnswer(status, "unavailable"), createdAnswer],
      async (store, { requests }) => {
        assert.equal((await store.create(draft)).id, 7n);
        const keys = requests.map(({ headers }) => headers["idempotency-key"]);
        assert.deepEqual(keys, [keys[0], keys[0], keys[0]]);
      },
    ),
  ),
  ...[400, 401, 403, 404, 409, 413, 422, 500, 507].map((status) =>
    scripted(
      `does not try again after ${status}`,
      [problemAnswer(status, "internal"), createdAnswer],
      async (store, { requests }) => {
        assert.equal((await failure(store.create(draft), PlantStoreProblem)).status, status);
        assert.equal(requests.length, 1);
      },
    ),
  ),
  scripted(
    "gives up with the last problem and its key after its tries",
    [problemAnswer(503, "unavailable")],
    async (_store, { url, requests }) => {
      const store = openStore({ url, token: "t" }, { retries: 2 });
      const problem = await failure(store.create(draft), PlantStoreProblem);
      assert.deepEqual([problem.status, problem.code], [503, "unavailable"]);
      assert.equal(requests.length, 3);
      assert.equal(problem.idempotencyKey, requests[0]?.headers["idempotency-key"]);
    },
  ),
  scripted("makes keys that start with the time", [createdAnswer], async (store, { requests }) => {
    const beforeMs = Date.now();
    await store.create(draft);
    const key = String(requests[0]?.headers["idempotency-key"]);
    assert.match(key, /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    const timeMs = Number.parseInt(key.slice(0, 13).replace("-", ""), 16);
    assert.ok(timeMs >= beforeMs && timeMs <= Date.now());
    await store.create(draft);
    assert.notEqual(requests[1]?.headers["idempotency-key"], key);
  }),
  scripted(
    "waits as many seconds as it is asked to",
    [problemAnswer(429, "rate-limited", { "retry-after": "1" }), createdAnswer],
    async (store) => {
      const startedAtMs = performance.now();
      await store.create(draft);
      assert.ok(performance.now() - startedAtMs >= 990);
    },
  ),
  {
    name: "waits until the date that it is asked to",
    async run(world) {
      const wait = problemAnswer(503, "unavailable", { "retry-after": inSeconds(3) });
      const service = await openScriptedService(wait, createdAnswer);
      const startedAtMs = performance.now();
      await openStore(world, { url: service.url }).create(draft);
      // A date has whole seconds, so up to one of the three may be lost.
      assert.ok(performance.now() - startedAtMs >= 1_500);
      service.close();
    },
  },
  scripted(
    "throws at once when it is asked to wait for very long",
    [problemAnswer(429, "rate-limited", { "retry-after": "61" }), createdAnswer],
    async (store, { requests }) => {
      const problem = await failure(store.create(draft), PlantStoreProblem);
      assert.deepEqual([problem.status, problem.retryAfterMs], [429, 61_000]);
      assert.equal(requests.length, 1);
    },
  ),
  {
    name: "counts tries that came too soon apart from those that failed",
    async run(world) {
      const soon = problemAnswer(429, "rate-limited", { "retry-after": "0" });
      const service = await openScriptedService(soon, soon, soon, createdAnswer);
      const { url } = service;
      const failed = openStore(world, { url, retries: 9, limitedRetries: 1 }).create(draft);
      assert.equal((await failure(failed, PlantStoreProblem)).status, 429);
      const store = openStore(world, { url, retries: 0, limitedRetries: 2 });
      assert.equal((await store.create(draft)).id, 7n);
      service.close();
    },
  },
  scripted(
    "reports a 404 where no earlier try can have deleted the plant",
    [problemAnswer(429, "rate-limited"), problemAnswer(404, "not-found")],
    async (store) => {
      assert.equal((await failure(store.delete(7), PlantStoreProblem)).code, "not-found");
    },
  ),
  scripted(
    "does not take another program's 404 for a plant that is gone",
    [problemAnswer(503, "unavailable"), { status: 404, body: "404 page not found" }],
    async (store) => {
      assert.equal((await failure(store.delete(7), PlantStoreProblem)).code, "unexpected");
    },
  ),
  scripted(
    "does not follow a redirect, which might leak the token",
    [{ status: 307, headers: { location: "/elsewhere" } }, createdAnswer],
    async (store, { requests }) => {
      const problem = await failure(store.create(draft), PlantStoreProblem);
      assert.deepEqual([problem.status, problem.code], [307, "unexpected"]);
      assert.equal(requests.length, 1);
    },
  ),
  scripted(
    "follows a link at its own address only, and never in a circle",
    [
      {
        status: 200,
        headers: { link: '<http://other.invalid/x?limit=1&after=7>; rel="next"' },
        body: '[{"id":7}]',
      },
    ],
    async (store, { requests }) => {
      const problem = await failure(collect(store.list({ fields: ["id"] })), PlantStoreProblem);
      assert.equal(problem.code, "unexpected");
      assert.deepEqual(
        requests.map(({ url }) => url),
        ["/plants?limit=1000&fields=id", "/plants?limit=1000&fields=id&after=7"],
      );
    },
  ),
  ...[
    { status: 200, headers: { "content-type": "text/html" }, body: "<html>Sign in</html>" },
    { status: 200, body: "" },
    { status: 201, body: "{}" },
    { status: 201, headers: { location: "/plants/7" }, body: '{"name":"Fern"}' },
    ...["/plants/", "/plants/0x7"].map((location) => ({ ...createdAnswer, headers: { location } })),
    { status: 200, body: '[{"name":"Fern","tag":"shade"}]' },
    { status: 200, body: '[{"id":"","name":"Fern","tag":"shade"}]' },
    { status: 200, body: '[{"id":7,"name":"Fern","tag":null}]' },
    { status: 404, body: "nothing here" },
    ...[
      '{"type":"about:blank","title":"Not Found","status":404}',
      '{"type":"https://gateway.invalid/invalid-request","errors":{"name":["is odd"]}}',
      '{"type":"urn:plantstore:problem:invalid-request","detail":"d","errors":[null]}',
      '{"type":7}',
      "null",
      '{"type":"urn:pl',
    ].map((body) => ({
      status: 400,
      headers: { "content-type": "application/problem+json" },
      body,
    })),
  ].map((answer) =>
    scripted(
      `reports that something else responded: ${answer.status} ${answer.body}`,
      [answer],
      async (store) => {
        const calls = [
          () => collect(store.list()),
          () => store.get(1),
          () => store.create(draft),
          () => store.put(1, draft),
          () => store.update(1, draft),
          () => store.delete(1),
        ];
        for (const call of calls) {
          assert.equal((await failure(call(), PlantStoreProblem)).code, "unexpected");
        }
      },
    ),
  ),
  scripted("takes a token as it was copied", [createdAnswer], async (_store, { url, requests }) => {
    for (const token of ["t", " Bearer t\n", "bearer  t"]) {
      await openStore({ url, token }).create(draft);
    }
    assert.deepEqual(
      requests.map(({ headers }) => headers.authorization),
      ["Bearer t", "Bearer t", "Bearer t"],
    );
  }),
  scripted(
    "fails at once when it is asked to wait longer than its caller has time",
    [problemAnswer(429, "rate-limited", { "retry-after": "2" }), createdAnswer],
    async (_store, { url, requests }) => {
      const store = openStore({ url, token: "t" }, { retryAfterMsMax: 1_000 });
      assert.equal((await failure(store.create(draft), PlantStoreProblem)).retryAfterMs, 2_000);
      assert.equal(requests.length, 1);
    },
  ),
  scripted(
    "speaks to a service under a base path",
    [createdAnswer],
    async (_store, { url, requests }) => {
      for (const path of ["/v1", "/v1/"]) {
        await openStore({ url: url + path, token: "t" }).create(draft);
      }
      assert.deepEqual(
        requests.map((request) => request.url),
        ["/v1/plants", "/v1/plants"],
      );
    },
  ),
];
