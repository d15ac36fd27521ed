/** Many plants at once: created and deleted in requests that the service takes, none twice. */
import assert from "node:assert/strict";
import { type PlantDraft, PlantStoreUnreachable } from "../../client/plant-store.ts";
import { type ClientCases, failure, openStore, problemOf, proxied } from "./client-case.ts";

const requestPlantsMax = 10_000;
const requestBytesMax = 256 * 1024;

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
    const { code, detail, errors } = await problemOf(store.createMany(drafts));
    assert.equal(code, "invalid-request");
    assert.match(detail, /^500\/name /);
    const pointers = errors.map(({ pointer }) => pointer);
    assert.deepEqual(pointers, ["/500/name", "/501/name"]);
    // Those of an earlier request, and none of that one.
    const { plants } = await store.me();
    assert.ok(plants > 0 && plants < 500);
  },

  async "sends many plants as they come, as many as the service takes, each request with its own key"(
    world,
  ) {
    const sent: { key: string | null; plants: number }[] = [];
    const fetch = async (_url: string, { headers, body }: RequestInit) => {
      assert.ok(Buffer.byteLength(String(body)) <= requestBytesMax);
      const plants: PlantDraft[] = JSON.parse(String(body));
      sent.push({ key: new Headers(headers).get("idempotency-key"), plants: plants.length });
      return Response.json(plants.map((_, id) => ({ status: 201, id })));
    };
    const store = openStore(world, { fetch });
    async function* grow() {
      for (let index = 0; index < requestPlantsMax + 2; index++) {
        yield { name: "Fern" };
        if (index === requestPlantsMax) assert.equal(sent.length, 1);
      }
    }
    await store.createMany(grow(), { idempotencyKey: "order-17" });
    assert.deepEqual(sent.splice(0), [
      { key: "order-17", plants: requestPlantsMax },
      { key: "order-17.10000", plants: 2 },
    ]);
    assert.equal((await store.createMany(wide(1_000))).length, 1_000);
    await store.createMany(wide(1), { idempotencyKey: "k".repeat(230) });
    const tooLong = { idempotencyKey: "k".repeat(231) };
    await failure(store.createMany(wide(1), tooLong), RangeError);
  },

  async "finishes many plants that a failure interrupted, with the key of the error"({
    store,
    ...world
  }) {
    const drafts = [{ name: "Plant 0" }, ...wide(500)];
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

  "says which of many deletions are not confirmed": proxied(async (store, proxy) => {
    const { id } = await store.create({ name: "Fern" });
    proxy.breakNext("after");
    assert.deepEqual(await store.deleteMany([id]), [{ status: 204, confirmed: false }]);
    assert.equal((await store.me()).plants, 0);
  }),
};
