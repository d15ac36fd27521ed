/**
 * The client against a running service, with nothing in between: what goes in comes back, exactly.
 */
import assert from "node:assert/strict";
import { hasCode, type PlantStore, type ResponseInfo } from "../../client/plant-store.ts";
import { type ClientCases, collect, failure, openStore, problemOf } from "./client-case.ts";

type ListOptions = Parameters<PlantStore["list"]>[0];

const fern = { name: "Fern", tag: "shade" };
const royal = { name: "Royal fern", tag: "pond" };

/** Ids at the bounds of what is exact, in their order, with texts that look like JSON. */
const plantsWithOddIds = [
  { id: -(2n ** 63n), name: '"id":1', tag: '"id":1' },
  { id: -(2n ** 53n) - 1n, name: '\\"id\\":9007199254740993,', tag: '\\"id\\":9007199254740993,' },
  { id: -1n, name: '{"id":1}', tag: '{"id":1}' },
  { id: 0n, name: "\\", tag: "\\" },
  { id: 7n, name: '"', tag: '"' },
  { id: 2n ** 53n + 1n, name: "-1e5", tag: "-1e5" },
  { id: 2n ** 63n - 1n, name: "ü\u2028", tag: "ü\u2028" },
];

/** Creates plants with the ids 1 to 7. */
async function createSevenPlants(store: PlantStore): Promise<void> {
  for (let id = 1; id <= 7; id++) await store.create({ name: `Plant ${id}`, id });
}

async function listIds(store: PlantStore, options: ListOptions): Promise<number[]> {
  const plants = await collect(store.list(options));
  return plants.map(({ id }) => Number(id));
}

/** Three plants that a search or a tag can tell apart. Their ids are 1, 2 and 3. */
async function createToFind(store: PlantStore): Promise<void> {
  await store.createMany([
    { name: "Royal fern", tag: "a&b" },
    { name: "Ivy" },
    { name: "Crème fern" },
  ]);
}

async function findNames(store: PlantStore, options: ListOptions): Promise<string[]> {
  const plants = await collect(store.list({ pageSize: 1, ...options }));
  return plants.map(({ name }) => name);
}

/** One plant for each of 1,002 tags, one more for the first of them, and one without a tag. */
async function createManyTags(store: PlantStore): Promise<void> {
  const plants = [
    { name: "Fern", tag: "" },
    { name: "Fern", tag: "tag 10000" },
  ];
  for (let index = 0; index < 1_002; index++) {
    plants.push({ name: "Fern", tag: `tag ${10_000 + index}` });
  }
  await store.createMany(plants);
}

async function assertPreconditionFailed(call: Promise<unknown>): Promise<void> {
  assert.equal((await problemOf(call)).code, "precondition-failed");
}

const idCases: ClientCases = {
  async "creates and gets plants with every digit of their ids"({ store }) {
    for (const plant of plantsWithOddIds) {
      const { replayed, etag, ...created } = await store.create(plant);

      assert.deepEqual(created, plant);
      assert.match(etag, /^".+"$/);
      assert.deepEqual(await store.get(plant.id), { ...plant, etag });
    }
  },

  async "lists plants with every digit of their ids"({ store }) {
    await store.createMany(plantsWithOddIds);

    assert.deepEqual(await collect(store.list({ pageSize: 3 })), plantsWithOddIds);
  },

  async "deletes plants by every digit of their ids"({ store }) {
    await store.createMany(plantsWithOddIds);

    for (const { id } of plantsWithOddIds) {
      assert.deepEqual(await store.delete(id), { confirmed: true });
    }

    assert.equal((await store.me()).plants, 0);
  },

  async "takes an id that is a number, and returns a bigint"({ store }) {
    assert.equal((await store.create({ name: "Fern", id: 7 })).id, 7n);
  },

  async "refuses an id that is a number and may be rounded"({ store }) {
    await failure(store.create({ name: "Fern", id: 2 ** 53 }), RangeError);
    await failure(store.delete(1.5), RangeError);
  },
};

const listCases: ClientCases = {
  async "lists all plants, whatever the size of a page"({ store }) {
    await createSevenPlants(store);

    assert.deepEqual(await listIds(store, { pageSize: 3 }), [1, 2, 3, 4, 5, 6, 7]);
    assert.deepEqual(await listIds(store, { pageSize: 7 }), [1, 2, 3, 4, 5, 6, 7]);
    assert.deepEqual(await listIds(store, {}), [1, 2, 3, 4, 5, 6, 7]);
  },

  async "lists no more plants than the limit, whatever the size of a page"({ store }) {
    await createSevenPlants(store);

    for (const pageSize of [3, 7, undefined]) {
      assert.deepEqual(await listIds(store, { pageSize, limit: 0 }), []);
      assert.deepEqual(await listIds(store, { pageSize, limit: 3 }), [1, 2, 3]);
      assert.deepEqual(await listIds(store, { pageSize, limit: 4 }), [1, 2, 3, 4]);
      assert.deepEqual(await listIds(store, { pageSize, limit: 8 }), [1, 2, 3, 4, 5, 6, 7]);
    }
  },

  async "lists plants after an id, whatever the size of a page"({ store }) {
    await createSevenPlants(store);

    for (const pageSize of [3, 7, undefined]) {
      assert.deepEqual(await listIds(store, { pageSize, after: 2, limit: 3 }), [3, 4, 5]);
    }
  },

  async "yields plants page by page"({ store }) {
    await createSevenPlants(store);

    const pages = await collect(store.pages({ pageSize: 6 }));

    assert.equal(pages.length, 2);
    assert.equal(pages[0]?.length, 6);
    assert.deepEqual(pages[1], [{ id: 7n, name: "Plant 7", tag: "" }]);
  },

  async "returns a page, and the id to go on after until the last page"({ store }) {
    await createSevenPlants(store);

    const first = await store.page({ limit: 5 });
    assert.equal(first.plants.length, 5);
    assert.equal(first.next, 5n);

    const last = await store.page({ limit: 5, after: first.next });
    assert.equal(last.plants.length, 2);
    assert.equal(last.next, undefined);
  },

  async "returns an empty page for a limit of 0"({ store }) {
    await createSevenPlants(store);

    assert.deepEqual(await store.page({ limit: 0 }), { plants: [], next: undefined });
  },

  async "refuses pages of no plants"({ store }) {
    await failure(listIds(store, { pageSize: 0 }), RangeError);
  },

  async "finds plants by words, in any case"({ store }) {
    await createToFind(store);

    assert.deepEqual(await findNames(store, { q: "FERN" }), ["Royal fern", "Crème fern"]);
  },

  async "finds plants by their exact tag"({ store }) {
    await createToFind(store);

    assert.deepEqual(await findNames(store, { tag: "a&b" }), ["Royal fern"]);
  },

  async "finds plants without a tag, the newest first"({ store }) {
    await createToFind(store);

    assert.deepEqual(await findNames(store, { tag: "", order: "desc" }), ["Crème fern", "Ivy"]);
  },

  async "goes on below an id if the newest plants come first"({ store }) {
    await createToFind(store);

    assert.deepEqual(await findNames(store, { order: "desc", after: 3, limit: 1 }), ["Ivy"]);
  },

  async "lists plants by the thousand, if it is asked for larger pages"({ store }) {
    await createManyTags(store);

    assert.equal((await collect(store.list({ pageSize: 1_100 }))).length, 1_004);
    assert.equal((await store.page({ limit: 1_100 })).next, 1_000n);
  },

  async "counts plants by tag, even with more than a thousand tags"({ store }) {
    await createManyTags(store);

    const counts = await collect(store.tags());

    assert.equal(counts.length, 1_003);
    assert.deepEqual(counts[0], { tag: "", plants: 1 });
    assert.deepEqual(counts[1], { tag: "tag 10000", plants: 2 });
  },

  async "counts as many tags as the limit says, after a tag"({ store }) {
    await store.createMany([
      { name: "Fern", tag: "hall" },
      { name: "Fern", tag: "pond" },
      { name: "Fern", tag: "shade" },
    ]);

    assert.deepEqual(await collect(store.tags({ after: "hall", limit: 1 })), [
      { tag: "pond", plants: 1 },
    ]);
    assert.deepEqual(await collect(store.tags({ limit: 0 })), []);
  },
};

const changeCases: ClientCases = {
  async "creates a plant by a put only if there is none"({ store }) {
    const id = 2n ** 53n + 1n;

    const { etag, ...created } = await store.put(id, { name: "Fern" }, { ifNoneMatch: "*" });

    assert.deepEqual(created, { id, name: "Fern", tag: "", created: true });
    assert.deepEqual(await store.get(id), { id, name: "Fern", tag: "", etag });
    await assertPreconditionFailed(store.put(id, royal, { ifNoneMatch: "*" }));
  },

  async "replaces a plant by a put only if there is one"({ store }) {
    await assertPreconditionFailed(store.put(7, fern, { ifMatch: "*" }));

    await store.create({ name: "Moss", id: 7 });

    assert.equal((await store.put(7, fern, { ifMatch: "*" })).created, false);
  },

  async "replaces a plant by a put only if nobody changed it"({ store }) {
    const id = 2n ** 53n + 1n;
    const before = await store.put(id, fern);

    const { etag, ...replaced } = await store.put(id, royal, { ifMatch: before.etag });

    assert.deepEqual(replaced, { id, ...royal, created: false });
    assert.deepEqual(await store.get(id), { id, ...royal, etag });
    await assertPreconditionFailed(store.put(id, fern, { ifMatch: before.etag }));
  },

  async "deletes a plant only if nobody changed it"({ store }) {
    const id = 2n ** 53n + 1n;
    const before = await store.put(id, fern);
    const after = await store.put(id, royal);

    await assertPreconditionFailed(store.delete(id, { ifMatch: before.etag }));
    assert.deepEqual(await store.delete(id, { ifMatch: after.etag }), { confirmed: true });
  },

  async "updates the fields it is given and leaves the others"({ store }) {
    await store.put(7, fern);

    const { etag, ...renamed } = await store.update(7, { name: "Royal fern" });

    assert.deepEqual(renamed, { id: 7n, name: "Royal fern", tag: "shade" });
    assert.equal((await store.get(7)).etag, etag);
  },

  async "leaves a field that is undefined, and empties a tag that is empty"({ store }) {
    await store.put(7, fern);

    const updated = await store.update(7, { name: undefined, tag: "" });

    assert.equal(updated.name, "Fern");
    assert.equal(updated.tag, "");
  },

  async "updates a plant only if nobody changed it"({ store }) {
    const before = await store.put(7, fern);
    await store.update(7, { tag: "" });

    await assertPreconditionFailed(store.update(7, { tag: "pond" }, { ifMatch: before.etag }));
  },

  async "doesn't create a plant by an update"({ store }) {
    assert.equal((await problemOf(store.update(8, fern))).code, "not-found");
  },
};

const problemCases: ClientCases = {
  async "throws a problem with all validation errors and a request id"({ store }) {
    const problem = await problemOf(store.create({ name: "", tag: "x".repeat(101) }));

    assert.equal(problem.status, 400);
    assert.equal(problem.code, "invalid-request");
    const pointers = problem.errors.map(({ pointer }) => pointer);
    assert.deepEqual(pointers, ["/name", "/tag"]);
    assert.match(problem.requestId ?? "", /./);
  },

  async "throws a problem that names an invalid parameter"({ store }) {
    const problem = await problemOf(collect(store.list({ limit: 1.5 })));

    assert.equal(problem.errors[0]?.parameter, "limit");
  },

  async "throws a conflict if the id is taken"({ store }) {
    await store.create({ name: "Fern", id: 7 });

    assert.equal((await problemOf(store.create({ name: "Moss", id: 7 }))).code, "conflict");
  },

  async "throws not-found for a plant that isn't there"({ store }) {
    assert.equal((await problemOf(store.get(8))).code, "not-found");
    assert.equal((await problemOf(store.delete(8))).code, "not-found");
  },

  async "says whether a problem has a code"({ store }) {
    const problem = await problemOf(store.get(8));

    assert.equal(hasCode(problem, "not-found"), true);
    assert.equal(hasCode(problem, "gone"), false);
  },

  async "finds undefined for a plant that isn't there"({ store }) {
    assert.equal(await store.find(8), undefined);
  },

  async "throws a problem, even when it finds, if the token is unknown"(world) {
    const stranger = openStore(world, { token: "nobody" });

    assert.equal((await problemOf(stranger.find(8))).code, "unauthenticated");
  },

  async "reports every response, even of a refused request"(world) {
    const seen: ResponseInfo[] = [];
    const store = openStore(world, { onResponse: (response) => seen.push(response) });

    await store.create({ name: "Fern" });
    await problemOf(store.get(8));

    const lines = seen.map(({ method, url, status }) => ({ method, url, status }));
    assert.deepEqual(lines, [
      { method: "POST", url: `${world.url}/plants`, status: 201 },
      { method: "GET", url: `${world.url}/plants/8?include=id`, status: 404 },
    ]);
  },

  async "reports each response with its request id, which its problem has, too"(world) {
    const seen: ResponseInfo[] = [];
    const store = openStore(world, { onResponse: (response) => seen.push(response) });

    await store.create({ name: "Fern" });
    const problem = await problemOf(store.get(8));

    const [created, refused] = seen;
    assert.ok(created?.requestId);
    assert.equal(created.requestId, created.headers.get("x-request-id"));
    assert.equal(refused?.requestId, problem.requestId);
    assert.notEqual(refused?.requestId, created.requestId);
  },

  async "refuses a token, a header and a key that no header can hold"(world) {
    assert.throws(() => openStore(world, { token: "two\nlines" }), TypeError);
    assert.throws(() => openStore(world, { headers: { key: "two\nlines" } }), TypeError);
    const call = openStore(world).create({ name: "Fern" }, { idempotencyKey: "two\nlines" });
    await failure(call, TypeError);
  },

  async "refuses an address without a scheme or with a user"(world) {
    // Without a scheme, a browser would take the address for a path of the page's own service.
    assert.throws(() => openStore(world, { url: "plants" }), TypeError);
    assert.throws(() => openStore(world, { url: "localhost:8080" }), TypeError);
    assert.throws(() => openStore(world, { url: "http://user@localhost" }), TypeError);
  },
};

export const plainCases: ClientCases = {
  ...idCases,
  ...listCases,
  ...changeCases,
  ...problemCases,
};
