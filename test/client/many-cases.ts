/** Many plants at once: created and deleted in requests that the service takes, none twice. */
import assert from "node:assert/strict";
import {
  type PlantDraft,
  PlantStoreProblem,
  PlantStoreUnreachable,
} from "../../client/plant-store.ts";
import {
  type ClientCases,
  type ClientWorld,
  failure,
  openStore,
  proxied,
  scripted,
} from "./client-case.ts";
import { problemAnswer } from "./scripted-service.ts";

const requestPlantsMax = 10_000;
const requestBytesMax = 256 * 1024;

/** What each request sends, instead of sending it; every plant but the first is created. */
function recordRequests(world: ClientWorld, firstStatus = 201) {
  const requests: { key: string | null; body: string; plants: PlantDraft[] }[] = [];
  const fetch = async (_url: string, init: RequestInit) => {
    const body = String(init.body);
    const plants: PlantDraft[] = JSON.parse(body);
    requests.push({ key: new Headers(init.headers).get("idempotency-key"), body, plants });
    return Response.json(plants.map((_, id) => ({ status: id === 0 ? firstStatus : 201, id })));
  };
  return { requests, store: openStore(world, { fetch }) };
}

const makeDrafts = (length: number): PlantDraft[] =>
  Array.from({ length }, (_, index) => ({ name: `Plant ${index}` }));

export const manyCases: ClientCases = {
  async "creates many plants, each with its own result in its place"(world) {
    const store = openStore(world);
    const id = 2n ** 63n - 1n;
    const drafts = [
      { name: "Fern", id },
      { name: "Moss", id },
      { name: "line\nbreak \u2028", tag: "🌱" },
    ];
    const [first, taken, last] = await store.createMany(drafts);
    assert.deepEqual(first, { status: 201, id, replayed: false });
    assert.ok(taken?.status === 409 && taken.code === "conflict" && taken.detail !== "");
    assert.ok(last?.status === 201);
    const { name, tag } = await store.get(last.id);
    assert.deepEqual({ name, tag }, drafts[2]);
    assert.deepEqual(await store.createMany([]), []);
  },

  async "throws a problem that names every invalid plant, and stores none of its request"(world) {
    const store = openStore(world);
    const invalid = [{ name: "Fern" }, { name: "" }, { name: "Ivy", tag: "x".repeat(101) }];
    const { code, errors } = await failure(store.createMany(invalid), PlantStoreProblem);
    assert.equal(code, "invalid-request");
    assert.deepEqual(
      errors.map(({ pointer }) => pointer),
      ["/1/name", "/2/tag"],
    );
    assert.equal((await store.me()).plants, 0);
  },

  async "names an invalid plant by its place among all that the call sends"(world) {
    const store = openStore(world);
    const drafts = [...makeDrafts(requestPlantsMax + 3), { name: "" }];
    const problem = await failure(store.createMany(drafts), PlantStoreProblem);
    assert.equal(problem.errors[0]?.pointer, "/10003/name");
    assert.match(problem.detail, /^10003\/name /);
    assert.equal((await store.me()).plants, requestPlantsMax);
  },

  async "splits many plants into requests that the service takes"(world) {
    const { requests, store } = recordRequests(world);
    const wide = Array.from({ length: 3_000 }, () => ({ name: "盆".repeat(200) }));
    assert.equal((await store.createMany(wide)).length, 3_000);
    assert.ok(requests.length > 1);
    for (const { body } of requests) assert.ok(Buffer.byteLength(body) <= requestBytesMax);
    assert.deepEqual(
      requests.flatMap(({ plants }) => plants),
      wide,
    );
  },

  async "gives each request its own key, if there is room for it"(world) {
    const { requests, store } = recordRequests(world);
    const drafts = makeDrafts(requestPlantsMax + 1);
    await store.createMany(drafts, { idempotencyKey: "order-17" });
    assert.deepEqual(
      requests.map(({ key, plants }) => [key, plants.length]),
      [
        ["order-17", requestPlantsMax],
        ["order-17.10000", 1],
      ],
    );
    await store.createMany(drafts, { idempotencyKey: "k".repeat(230) });
    await failure(store.createMany(drafts, { idempotencyKey: "k".repeat(231) }), RangeError);
    assert.equal(requests.length, 4);
  },

  async "takes plants from an async source as fast as it sends them"(world) {
    const { requests, store } = recordRequests(world);
    const requestsBefore: number[] = [];
    async function* grow() {
      for (const draft of makeDrafts(2 * requestPlantsMax + 1)) {
        requestsBefore.push(requests.length);
        yield draft;
      }
    }
    assert.equal((await store.createMany(grow())).length, 2 * requestPlantsMax + 1);
    assert.equal(requests.length, 3);
    assert.equal(requestsBefore[requestPlantsMax + 1], 1);
  },

  "creates many plants once although connections break": proxied(async (store, proxy) => {
    for (const [index, breakage] of (["before", "after", "midway"] as const).entries()) {
      proxy.breakNext(breakage);
      const results = await store.createMany(makeDrafts(300));
      const isReplayed = breakage !== "before";
      assert.ok(results.every((each) => each.status === 201 && each.replayed === isReplayed));
      assert.equal((await store.me()).plants, 300 * (index + 1));
    }
  }),

  "finishes many plants that a failure interrupted, with the key of the error": proxied(
    async (store, proxy) => {
      const drafts = makeDrafts(requestPlantsMax + 5);
      proxy.breakNext(undefined, "after");
      const { idempotencyKey } = await failure(store.createMany(drafts), PlantStoreUnreachable);
      const results = await store.createMany(drafts, { idempotencyKey });
      assert.ok(results.every((result) => result.status === 201 && result.replayed));
      assert.equal((await store.me()).plants, drafts.length);
    },
    { retries: 0 },
  ),

  async "deletes many plants, with a result for each in its place"(world) {
    const store = openStore(world);
    await store.createMany(makeDrafts(40).map((draft, index) => ({ ...draft, id: index + 1 })));
    const results = await store.deleteMany([...Array(42).keys()]);
    assert.deepEqual(results.slice(1, 41), Array(40).fill({ status: 204, confirmed: true }));
    assert.deepEqual([results[0], results[41]], Array(2).fill({ status: 404 }));
    assert.equal((await store.me()).plants, 0);
    assert.deepEqual(await store.deleteMany([]), []);
  },

  async "deletes more plants than the service takes at once, exactly those that were named"(world) {
    const counts: number[] = [];
    const far = 2n ** 62n;
    const fetch = async (_url: string, init: RequestInit) => {
      const ids = String(init.body).slice('{"ids":['.length, -2).split(",");
      counts.push(ids.length);
      return new Response(`{"deleted":${ids.length - 1},"missing":[${ids.at(-1)}]}`);
    };
    const ids = Array.from({ length: requestPlantsMax + 2 }, (_, index) => far + BigInt(index));
    const results = await openStore(world, { fetch }).deleteMany(ids);
    assert.deepEqual(counts, [requestPlantsMax, 2]);
    const missing = results.flatMap(({ status }, index) => (status === 404 ? [index] : []));
    assert.deepEqual(missing, [requestPlantsMax - 1, requestPlantsMax + 1]);
  },

  "deletes plants while it lists them, and says which deletions are not confirmed": proxied(
    async (store, proxy) => {
      await store.create({ name: "Fern" });
      async function* listIds() {
        for await (const plant of store.list()) yield plant.id;
        proxy.breakNext("after");
      }
      assert.deepEqual(await store.deleteMany(listIds()), [{ status: 204, confirmed: false }]);
      assert.equal((await store.me()).plants, 0);
    },
  ),

  "stops deleting at the first failure that is no missing plant": scripted(
    [problemAnswer(403, "forbidden")],
    async (store, { requests }) => {
      const call = store.deleteMany([...Array(100).keys()]);
      assert.equal((await failure(call, PlantStoreProblem)).code, "forbidden");
      assert.equal(requests.length, 1);
    },
  ),
};
