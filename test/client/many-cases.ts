/** Many plants at once: created and deleted in requests that the service takes, none twice. */
import assert from "node:assert/strict";
import { type PlantDraft, PlantStoreUnreachable } from "../../client/plant-store.ts";
import { type ClientCases, failure, openStore, problemOf, proxied } from "./client-case.ts";

const requestPlantsMax = 10_000;

/** Plants of which a few hundred fill a request. */
function makeWideDrafts(count: number): PlantDraft[] {
  return Array.from({ length: count }, () => ({ name: "盆".repeat(200) }));
}

interface SentBulk {
  readonly key: string | null;
  readonly plants: number;
  readonly bytes: number;
}

/** Instead of a service: a `fetch` that creates all plants, and what it was sent. */
function recordBulks() {
  const sent: SentBulk[] = [];
  const fetch = async (_url: string, { headers, body }: RequestInit) => {
    const text = String(body);
    const drafts: PlantDraft[] = JSON.parse(text);
    const key = new Headers(headers).get("idempotency-key");
    sent.push({ key, plants: drafts.length, bytes: Buffer.byteLength(text) });
    return Response.json(drafts.map((_draft, index) => ({ status: 201, id: index })));
  };
  return { sent, fetch };
}

const createCases: ClientCases = {
  async "creates many plants, each with its own result in its place"({ store }) {
    const id = 2n ** 63n - 1n;

    const [created, taken, assigned] = await store.createMany([
      { name: "Fern", id },
      { name: "Moss", id },
      { name: "Ivy" },
    ]);

    assert.deepEqual(created, { status: 201, id, replayed: false });
    assert.ok(taken?.status === 409);
    assert.equal(taken.code, "conflict");
    assert.notEqual(taken.detail, "");
    assert.ok(assigned?.status === 201);
    assert.equal((await store.get(assigned.id)).name, "Ivy");
  },

  async "creates many plants with exactly their names and tags"({ store }) {
    await store.createMany([{ id: 7, name: "line\nbreak \u2028", tag: "🌱" }]);

    const { name, tag } = await store.get(7);

    assert.equal(name, "line\nbreak \u2028");
    assert.equal(tag, "🌱");
  },

  async "creates none of no plants"({ store }) {
    assert.deepEqual(await store.createMany([]), []);
  },

  async "names invalid plants by their places among all that the call sends"({ store }) {
    const drafts = [...makeWideDrafts(500), { name: "" }, { name: "" }];

    const { code, detail, errors } = await problemOf(store.createMany(drafts));

    assert.equal(code, "invalid-request");
    assert.match(detail, /^500\/name /);
    const pointers = errors.map(({ pointer }) => pointer);
    assert.deepEqual(pointers, ["/500/name", "/501/name"]);
    // An earlier request has stored its plants, and the one with the invalid plants none.
    const { plants } = await store.me();
    assert.ok(plants > 0 && plants < 500);
  },

  async "sends a request as soon as there are plants to fill it"(world) {
    const { sent, fetch } = recordBulks();
    let sentBeforeLast = 0;
    async function* growPlants() {
      for (let index = 0; index < requestPlantsMax + 2; index++) {
        yield { name: "Fern" };
        if (index === requestPlantsMax) sentBeforeLast = sent.length;
      }
    }

    await openStore(world, { fetch }).createMany(growPlants());

    assert.equal(sentBeforeLast, 1);
    assert.equal(sent.length, 2);
  },

  async "sends each request of a call with its own key"(world) {
    const { sent, fetch } = recordBulks();
    const drafts = Array.from({ length: requestPlantsMax + 2 }, () => ({ name: "Fern" }));

    await openStore(world, { fetch }).createMany(drafts, { idempotencyKey: "order-17" });

    const bulks = sent.map(({ key, plants }) => ({ key, plants }));
    assert.deepEqual(bulks, [
      { key: "order-17", plants: requestPlantsMax },
      { key: "order-17.10000", plants: 2 },
    ]);
  },

  async "sends no request of more than 256 KiB"(world) {
    const { sent, fetch } = recordBulks();
    const store = openStore(world, { fetch });
    const smallDrafts = Array.from({ length: requestPlantsMax }, () => ({ name: "Fern" }));

    assert.equal((await store.createMany(smallDrafts)).length, requestPlantsMax);
    assert.equal((await store.createMany(makeWideDrafts(1_000))).length, 1_000);

    assert.ok(sent.length > 2);
    for (const { bytes } of sent) assert.ok(bytes <= 256 * 1024, `It had ${bytes} bytes.`);
  },

  async "takes a key of up to 230 characters for many plants"(world) {
    const store = openStore(world, { fetch: recordBulks().fetch });

    await store.createMany([{ name: "Fern" }], { idempotencyKey: "k".repeat(230) });

    const tooLong = { idempotencyKey: "k".repeat(231) };
    await failure(store.createMany([{ name: "Fern" }], tooLong), RangeError);
  },

  async "finishes an interrupted call for many plants with the key of its error"({
    store,
    ...world
  }) {
    const drafts = [{ name: "Plant 0" }, ...makeWideDrafts(500)];
    /** Loses every response but the first request's. */
    const fetchFirst = async (url: string, init: RequestInit) => {
      const response = await fetch(url, init);
      if (response.ok && !String(init.body).includes('"Plant 0"')) throw new Error("lost");
      return response;
    };
    const unlucky = openStore(world, { fetch: fetchFirst, retries: 2 });
    const { idempotencyKey } = await failure(unlucky.createMany(drafts), PlantStoreUnreachable);

    const results = await store.createMany(drafts, { idempotencyKey });

    for (const result of results) assert.ok(result.status === 201 && result.replayed);
    assert.equal(results.length, drafts.length);
    assert.equal((await store.me()).plants, drafts.length);
  },
};

/** More ids than the service takes at once. */
const firstId = 2n ** 62n;
const manyIds = Array.from({ length: requestPlantsMax + 2 }, (_, index) => firstId + BigInt(index));
/** Places in `manyIds` around the end of the first request. */
const places = [0, requestPlantsMax - 1, requestPlantsMax];
const plantsAtPlaces = places.map((place) => ({ name: "Fern", id: firstId + BigInt(place) }));

/** At which places of a call's results this status is. */
function placesWith(status: number, results: readonly { status: number }[]): number[] {
  return results.flatMap((result, place) => (result.status === status ? [place] : []));
}

const changeCases: ClientCases = {
  async "updates more plants than the service takes at once, each in its place"({ store }) {
    await store.createMany(plantsAtPlaces);

    const results = await store.updateMany(manyIds, { tag: "hall" });

    assert.equal(results.length, manyIds.length);
    assert.deepEqual(placesWith(200, results), places);
    for (const { id } of plantsAtPlaces) assert.equal((await store.get(id)).tag, "hall");
  },

  async "deletes more plants than the service takes at once, each in its place"({ store }) {
    await store.createMany(plantsAtPlaces);

    const results = await store.deleteMany(manyIds);

    assert.equal(results.length, manyIds.length);
    assert.deepEqual(placesWith(204, results), places);
    assert.deepEqual(results[0], { status: 204, confirmed: true });
    assert.equal((await store.me()).plants, 0);
  },

  "says which of many deletions are not confirmed": proxied(async ({ store, proxy }) => {
    const { id } = await store.create({ name: "Fern" });
    proxy.breakNext("after");

    assert.deepEqual(await store.deleteMany([id]), [{ status: 204, confirmed: false }]);
    assert.equal((await store.me()).plants, 0);
  }),
};

export const manyCases: ClientCases = { ...createCases, ...changeCases };
