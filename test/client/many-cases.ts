/** Many plants at once: created and deleted in requests that the service takes, none twice. */
import assert from "node:assert/strict";
import {
  type PlantDraft,
  PlantStoreProblem,
  PlantStoreUnreachable,
} from "../../client/plant-store.ts";
import { type ClientCases, type ClientWorld, failure, openStore, proxied } from "./client-case.ts";

const requestPlantsMax = 10_000;
const requestBytesMax = 256 * 1024;

/** What each request sends, instead of sending it. */
function recordRequests(world: ClientWorld) {
  const requests: { key: string | null; body: string; plants: PlantDraft[] }[] = [];
  const fetch = async (_url: string, init: RequestInit) => {
    const body = String(init.body);
    const plants: PlantDraft[] = JSON.parse(body);
    requests.push({ key: new Headers(init.headers).get("idempotency-key"), body, plants });
    return Response.json(plants.map((_, id) => ({ status: 201, id })));
  };
  return { requests, store: openStore(world, { fetch }) };
}

const makeDrafts = (length: number): PlantDraft[] =>
  Array.from({ length }, (_, index) => ({ name: `Plant ${index}` }));

/** A few hundred of these fill a request. */
const wide = (length: number): PlantDraft[] =>
  Array.from({ length }, () => ({ name: "盆".repeat(200) }));

export const manyCases: ClientCases = {
  async "creates many plants, each with its own result in its place"({ store }) {
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

  async "names invalid plants by their places among all that the call sends"({ store }) {
    const drafts = [...wide(500), { name: "" }, { name: "" }];
    const { code, detail, errors } = await failure(store.createMany(drafts), PlantStoreProblem);
    assert.equal(code, "invalid-request");
    assert.match(detail, /^500\/name /);
    const pointers = errors.map(({ pointer }) => pointer);
    assert.deepEqual(pointers, ["/500/name", "/501/name"]);
    // Those of an earlier request, and none of that one.
    const { plants } = await store.me();
    assert.ok(plants > 0 && plants < 500);
  },

  async "splits many plants into requests that the service takes"(world) {
    const { requests, store } = recordRequests(world);
    const drafts = wide(1_000);
    assert.equal((await store.createMany(drafts)).length, 1_000);
    assert.ok(requests.length > 1);
    for (const { body } of requests) assert.ok(Buffer.byteLength(body) <= requestBytesMax);
    const sent = requests.flatMap(({ plants }) => plants);
    assert.deepEqual(sent, drafts);
  },

  async "sends plants of an async source as they come, each request with its own key"(world) {
    const { requests, store } = recordRequests(world);
    async function* grow() {
      for (const draft of makeDrafts(requestPlantsMax + 2)) {
        yield draft;
        if (draft.name === `Plant ${requestPlantsMax}`) assert.equal(requests.length, 1);
      }
    }
    await store.createMany(grow(), { idempotencyKey: "order-17" });
    const sent = requests.map(({ key, plants }) => `${key}: ${plants.length}`);
    assert.deepEqual(sent, ["order-17: 10000", "order-17.10000: 2"]);
    await store.createMany(makeDrafts(1), { idempotencyKey: "k".repeat(230) });
    const tooLong = { idempotencyKey: "k".repeat(231) };
    await failure(store.createMany(makeDrafts(1), tooLong), RangeError);
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

  async "finishes many plants that a failure interrupted, with the key of the error"({
    store,
    ...world
  }) {
    const drafts = [...makeDrafts(1), ...wide(500)];
    // Each response to the second request is lost.
    const fetchFirst = async (url: string, init: RequestInit) => {
      const response = await fetch(url, init);
      if (response.ok && !String(init.body).includes('"Plant 0"')) throw new Error("lost");
      return response;
    };
    const unlucky = openStore(world, { fetch: fetchFirst, retries: 2 });
    const { idempotencyKey } = await failure(unlucky.createMany(drafts), PlantStoreUnreachable);
    const results = await store.createMany(drafts, { idempotencyKey });
    assert.ok(results.every((result) => result.status === 201 && result.replayed));
    assert.equal((await store.me()).plants, drafts.length);
  },

  async "changes and deletes more plants than the service takes at once, those that were named"({
    store,
  }) {
    const first = 2n ** 62n;
    const ids = Array.from({ length: requestPlantsMax + 2 }, (_, index) => first + BigInt(index));
    const there = [0, requestPlantsMax - 1, requestPlantsMax];
    await store.createMany(there.map((index) => ({ name: "Fern", id: first + BigInt(index) })));
    const placesOf = (results: { status: number }[], status: number) =>
      results.flatMap((each, index) => (each.status === status ? [index] : []));
    assert.deepEqual(placesOf(await store.updateMany(ids, { tag: "hall" }), 200), there);
    const deleted = await store.deleteMany(ids);
    assert.deepEqual(placesOf(deleted, 204), there);
    assert.deepEqual([deleted.length, deleted[0]], [ids.length, { status: 204, confirmed: true }]);
    assert.equal((await store.me()).plants, 0);
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
};
