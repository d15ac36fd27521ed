/** The client's further calls: one plant, a tag, many plants at once, whose the token is. */
import assert from "node:assert/strict";
import {
  type PlantDraft,
  type PlantStore,
  PlantStoreProblem,
  PlantStoreUnreachable,
} from "../../src/client/plant-store.ts";
import { type ClientCase, collect, failure, openStore } from "./client-case.ts";
import { openFaultyProxy } from "./faulty-proxy.ts";
import { openScriptedService, problemAnswer } from "./scripted-service.ts";

const requestLinesMax = 10_000;
const requestBytesMax = 1024 * 1024;

/** What each request sends, instead of sending it; every line is created. */
function recordRequests(world: { url: string; token: string }) {
  const requests: { key: string | null; body: string }[] = [];
  const fetch = async (_url: string, init: RequestInit) => {
    const body = String(init.body);
    requests.push({ key: new Headers(init.headers).get("idempotency-key"), body });
    const results = body.split("\n").map((_, index) => `{"status":201,"id":${index}}\n`);
    return new Response(results.join(""));
  };
  return { requests, store: openStore(world, { fetch }) };
}

async function countPlants(store: PlantStore): Promise<number> {
  return (await collect(store.list({ fields: ["id"] }))).length;
}

export const manyCases: readonly ClientCase[] = [
  {
    name: "gets a plant by its id, exactly, or a problem",
    async run(world) {
      const store = openStore(world);
      const id = 2n ** 53n + 1n;
      await store.create({ name: '"id":1', tag: "shade", id });
      const { etag, ...plant } = await store.get(id);
      assert.deepEqual(plant, { id, name: '"id":1', tag: "shade" });
      assert.match(etag, /^".+"$/);
      const missing = await failure(store.get(7), PlantStoreProblem);
      assert.equal(missing.code, "not-found");
    },
  },
  {
    name: "lists plants with exactly one tag, page by page",
    async run(world) {
      const store = openStore(world);
      const tags = ["shade", "", "shade & sun", "Shade", "shade", "shade"];
      await store.createMany(tags.map((tag, index) => ({ name: `Plant ${index}`, tag })));
      const list = async (tag: string) =>
        (await collect(store.list({ tag, pageSize: 2 }))).map(({ name }) => name);
      assert.deepEqual(await list("shade"), ["Plant 0", "Plant 4", "Plant 5"]);
      assert.deepEqual(await list(""), ["Plant 1"]);
      assert.deepEqual(await list("shade & sun"), ["Plant 2"]);
      assert.deepEqual(await list("none"), []);
    },
  },
  {
    name: "gives each batch a key of its own, also within quotes, and refuses one without room for it",
    async run(world) {
      const { requests, store } = recordRequests(world);
      const drafts = Array.from({ length: requestLinesMax + 1 }, () => ({ name: "Fern" }));
      await store.createMany(drafts, { idempotencyKey: '"order-17"' });
      assert.deepEqual(
        requests.map(({ key }) => key),
        ['"order-17"', '"order-17.10000"'],
      );
      await store.createMany(drafts, { idempotencyKey: "k".repeat(230) });
      await failure(store.createMany(drafts, { idempotencyKey: "k".repeat(231) }), RangeError);
      assert.equal(requests.length, 4);
    },
  },
  {
    name: "takes a page of no plants, and refuses to list by such pages",
    async run(world) {
      const store = openStore(world);
      await store.create({ name: "Fern", id: 7 });
      const empty = { plants: [], next: undefined };
      assert.deepEqual(await store.page({ limit: 0 }), empty);
      assert.deepEqual(await store.page({ limit: 0, after: 5 }), empty);
      await failure(collect(store.list({ pageSize: 0 })), RangeError);
    },
  },
  {
    name: "says whose the token is, and how many plants there are",
    async run(world) {
      const store = openStore(world);
      await store.create({ name: "Fern" });
      const { user, garden, scope, plants, expiresAt } = await store.me();
      assert.equal(user, garden);
      assert.deepEqual([scope, plants, expiresAt], ["write", 1, undefined]);
    },
  },
  {
    name: "creates many plants, each with its own result in its place",
    async run(world) {
      const store = openStore(world);
      const id = 2n ** 63n - 1n;
      const drafts = [
        { name: "Fern", id },
        { name: "" },
        { name: "Moss", id },
        { name: "line\nbreak \u2028", tag: "🌱" },
      ];
      const results = await store.createMany(drafts);
      assert.deepEqual(
        results.map(({ status }) => status),
        [201, 400, 409, 201],
      );
      assert.deepEqual(results[0], { status: 201, id, replayed: false });
      const [, invalid, taken] = results;
      assert.ok(invalid?.status === 400 && invalid.errors?.[0]?.pointer === "/name");
      assert.ok(taken?.status === 409 && taken.code === "conflict" && taken.detail !== "");
      const created = results[3];
      assert.ok(created?.status === 201);
      const { name, tag } = await store.get(created.id);
      assert.deepEqual({ name, tag }, drafts[3]);
      assert.deepEqual(await store.createMany([]), []);
    },
  },
  {
    name: "splits many plants into requests that the service takes, each with its own key",
    async run(world) {
      const few = recordRequests(world);
      const drafts = (count: number): PlantDraft[] =>
        Array.from({ length: count }, (_, index) => ({ name: `Plant ${index}` }));
      assert.equal((await few.store.createMany(drafts(requestLinesMax))).length, requestLinesMax);
      assert.equal(few.requests.length, 1);

      const more = recordRequests(world);
      const options = { idempotencyKey: "k" };
      await more.store.createMany(drafts(requestLinesMax + 1), options);
      assert.deepEqual(
        more.requests.map(({ key, body }) => [key, body.split("\n").length]),
        [
          ["k", requestLinesMax],
          [`k.${requestLinesMax}`, 1],
        ],
      );

      const long = recordRequests(world);
      const wide = Array.from({ length: 3_000 }, () => ({ name: "盆".repeat(200) }));
      assert.equal((await long.store.createMany(wide)).length, 3_000);
      assert.ok(long.requests.length > 1);
      for (const { body } of long.requests) {
        assert.ok(new TextEncoder().encode(body).length <= requestBytesMax);
      }
      const lines = long.requests.flatMap(({ body }) => body.split("\n"));
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        wide,
      );
    },
  },
  {
    name: "creates as many plants as the largest request holds, and some more",
    async run(world) {
      const store = openStore(world);
      const count = requestLinesMax + 5;
      const drafts = Array.from({ length: count }, (_, index) => ({ name: `Plant ${index}` }));
      const options = { idempotencyKey: "largest" };
      const first = await store.createMany(drafts, options);
      assert.ok(first.every((result) => result.status === 201 && !result.replayed));
      const again = await store.createMany(drafts, options);
      assert.deepEqual(
        again,
        first.map((result) => ({ ...result, replayed: true })),
      );
      assert.equal(await countPlants(store), count);
    },
  },
  ...(["before", "after", "midway"] as const).map(
    (breakage): ClientCase => ({
      name: `creates many plants once although the connection breaks: ${breakage}`,
      async run(world) {
        const proxy = await openFaultyProxy(world.url);
        const store = openStore(world, { url: proxy.url });
        proxy.breakNext(breakage);
        const drafts = Array.from({ length: 300 }, (_, index) => ({ name: `Plant ${index}` }));
        const results = await store.createMany(drafts);
        proxy.close();
        assert.ok(results.every((result) => result.status === 201));
        if (breakage === "midway") {
          assert.ok(results.every((result) => result.status === 201 && result.replayed));
        }
        assert.equal(await countPlants(openStore(world)), 300);
      },
    }),
  ),
  {
    name: "finishes many plants that a failure interrupted, with the key of the error",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      const store = openStore(world, { url: proxy.url, retries: 0 });
      const count = requestLinesMax + 5;
      const drafts = Array.from({ length: count }, (_, index) => ({ name: `Plant ${index}` }));
      proxy.breakNext(undefined, "after");
      const { idempotencyKey } = await failure(store.createMany(drafts), PlantStoreUnreachable);
      const results = await store.createMany(drafts, { idempotencyKey });
      proxy.close();
      assert.ok(results.every((result) => result.status === 201 && result.replayed));
      assert.equal(await countPlants(openStore(world)), count);
    },
  },
  {
    name: "takes plants from an async source as fast as it sends them",
    async run(world) {
      const { requests, store } = recordRequests(world);
      const requestsBefore: number[] = [];
      async function* grow() {
        for (let index = 0; index <= 2 * requestLinesMax; index++) {
          requestsBefore.push(requests.length);
          yield { name: `Plant ${index}` };
        }
      }
      assert.equal((await store.createMany(grow())).length, 2 * requestLinesMax + 1);
      assert.equal(requests.length, 3);
      assert.deepEqual(
        [0, requestLinesMax + 1, 2 * requestLinesMax].map((index) => requestsBefore[index]),
        [0, 1, 1],
      );
    },
  },
  {
    name: "deletes many plants, with a result for each in its place",
    async run(world) {
      const store = openStore(world);
      for (let id = 1; id <= 40; id++) await store.create({ name: `Plant ${id}`, id });
      const results = await store.deleteMany([...Array(42).keys()]);
      const deleted = { status: 204, confirmed: true };
      assert.deepEqual(results.slice(1, 41), Array(40).fill(deleted));
      for (const missing of [results[0], results[41]]) {
        assert.ok(missing?.status === 404 && missing.code === "not-found");
      }
      assert.equal(results.length, 42);
      assert.equal(await countPlants(store), 0);
      assert.deepEqual(await store.deleteMany([]), []);
    },
  },
  {
    name: "deletes plants while it lists them, and says which deletions are not confirmed",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      const store = openStore(world, { url: proxy.url });
      const { id } = await store.create({ name: "Fern" });
      async function* listIds() {
        for await (const plant of store.list()) yield plant.id;
        proxy.breakNext("after");
      }
      assert.deepEqual(await store.deleteMany(listIds()), [{ status: 204, confirmed: false }]);
      proxy.close();
      assert.equal((await failure(openStore(world).get(id), PlantStoreProblem)).status, 404);
    },
  },
  {
    name: "stops deleting at the first failure that is no missing plant",
    async run(world) {
      const service = await openScriptedService(problemAnswer(403, "forbidden"));
      const store = openStore(world, { url: service.url });
      const call = store.deleteMany([...Array(100).keys()]);
      assert.equal((await failure(call, PlantStoreProblem)).code, "forbidden");
      assert.ok(service.requests.length < 20);
      service.close();
    },
  },
  {
    name: "takes fewer results than lines for a response of something else",
    async run(world) {
      const headers = { "content-type": "application/jsonl" };
      const body = '{"status":201,"id":1}\n';
      const service = await openScriptedService({ status: 200, headers, body });
      const store = openStore(world, { url: service.url });
      const call = store.createMany([{ name: "Fern" }, { name: "Moss" }]);
      assert.equal((await failure(call, PlantStoreProblem)).code, "unexpected");
      service.close();
    },
  },
];
