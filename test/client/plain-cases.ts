/**
 * The client against a running service, with nothing in between: what goes in comes back, exactly.
 */
import assert from "node:assert/strict";
import { hasCode, type PlantStore, type ResponseInfo } from "../../client/plant-store.ts";
import { type ClientCases, collect, failure, openStore, problemOf } from "./client-case.ts";

type ListOptions = Parameters<PlantStore["list"]>[0];

const fern = { name: "Fern", tag: "shade" };
const royal = { name: "Royal fern", tag: "pond" };

async function isRefused(call: Promise<unknown>): Promise<void> {
  assert.equal((await problemOf(call)).code, "precondition-failed");
}

export const plainCases: ClientCases = {
  async "keeps every id exact, both ways, and refuses numbers that may be rounded"({ store }) {
    const names = [
      '"id":1',
      '\\"id\\":9007199254740993,',
      '{"id":1}',
      "\\",
      '"',
      "-1e5",
      "ü\u2028",
    ];
    const ids = [-(2n ** 63n), -(2n ** 53n) - 1n, -1n, 0n, 7n, 2n ** 53n + 1n, 2n ** 63n - 1n];
    const plants = ids.map((id, at) => ({ id, name: names[at] ?? "", tag: names[at] ?? "" }));
    for (const plant of plants) {
      const { replayed, ...created } = await store.create(plant);
      assert.deepEqual(await store.get(plant.id), created);
      const { etag, ...kept } = created;
      assert.deepEqual(kept, plant);
      assert.match(etag, /^".+"$/);
    }
    assert.deepEqual(await collect(store.list({ pageSize: 3 })), plants);
    for (const id of ids) assert.deepEqual(await store.delete(id), { confirmed: true });
    assert.equal((await store.create({ name: "Fern", id: 7 })).id, 7n);
    await failure(store.create({ name: "Fern", id: 2 ** 53 }), RangeError);
    await failure(store.delete(1.5), RangeError);
  },

  async "follows the links from page to page, up to the limit and after an id"({ store }) {
    for (let id = 1; id <= 7; id++) await store.create({ name: `Plant ${id}`, id });
    const idsOf = async (options: ListOptions) =>
      (await collect(store.list(options))).map(({ id }) => Number(id));
    const all = [1, 2, 3, 4, 5, 6, 7];
    for (const pageSize of [3, 7, undefined]) {
      for (const limit of [undefined, 0, 3, 4, 8]) {
        assert.deepEqual(await idsOf({ pageSize, limit }), all.slice(0, limit));
      }
      assert.deepEqual(await idsOf({ pageSize, after: 2, limit: 3 }), [3, 4, 5]);
    }
    const pages = await collect(store.pages({ pageSize: 6 }));
    assert.deepEqual([pages.length, pages[1]], [2, [{ id: 7n, name: "Plant 7", tag: "" }]]);
    const { plants, next } = await store.page({ limit: 5 });
    assert.deepEqual([plants.length, next], [5, 5n]);
    assert.equal((await store.page({ limit: 5, after: next })).next, undefined);
    assert.deepEqual(await store.page({ limit: 0 }), { plants: [], next: undefined });
    await failure(idsOf({ pageSize: 0 }), RangeError);
  },

  async "finds plants by words and by tag, and lists the newest first"({ store }) {
    const plants = [{ name: "Royal fern", tag: "a&b" }, { name: "Ivy" }, { name: "Crème fern" }];
    await store.createMany(plants);
    const find = async (options: ListOptions) =>
      (await collect(store.list({ pageSize: 1, ...options }))).map(({ name }) => name);
    assert.deepEqual(await find({ q: "FERN" }), ["Royal fern", "Crème fern"]);
    assert.deepEqual(await find({ tag: "a&b" }), ["Royal fern"]);
    assert.deepEqual(await find({ tag: "", order: "desc" }), ["Crème fern", "Ivy"]);
    assert.deepEqual(await find({ order: "desc", after: 3, limit: 1 }), ["Ivy"]);
  },

  async "lists plants and counts tags by the thousand, if it is to ask for more"({ store }) {
    const tags = Array.from({ length: 1_002 }, (_, index) => `tag ${10_000 + index}`);
    await store.createMany([...tags, "", "tag 10000"].map((tag) => ({ name: "Fern", tag })));
    assert.equal((await collect(store.list({ pageSize: 1_100 }))).length, 1_004);
    assert.equal((await store.page({ limit: 1_100 })).next, 1_000n);
    const counts = await collect(store.tags());
    assert.deepEqual(counts.slice(0, 2), [
      { tag: "", plants: 1 },
      { tag: "tag 10000", plants: 2 },
    ]);
    assert.equal(counts.length, 1_003);
    const some = await collect(store.tags({ after: "tag 10999", limit: 1 }));
    assert.deepEqual(some, [{ tag: "tag 11000", plants: 1 }]);
    assert.deepEqual(await collect(store.tags({ limit: 0 })), []);
  },

  async "puts and deletes only if the precondition holds, with the id exact"({ store }) {
    const id = 2n ** 53n + 1n;
    await isRefused(store.put(id, fern, { ifMatch: "*" }));
    const { etag, ...created } = await store.put(id, { name: "Fern" }, { ifNoneMatch: "*" });
    assert.deepEqual(created, { id, name: "Fern", tag: "", created: true });
    await isRefused(store.put(id, fern, { ifNoneMatch: "*" }));
    const { etag: later, ...replaced } = await store.put(id, royal, { ifMatch: etag });
    assert.deepEqual(replaced, { id, ...royal, created: false });
    assert.deepEqual(await store.get(id), { id, ...royal, etag: later });
    await isRefused(store.put(id, fern, { ifMatch: etag }));
    await isRefused(store.delete(id, { ifMatch: etag }));
    assert.deepEqual(await store.delete(id, { ifMatch: later }), { confirmed: true });
  },

  async "updates what it is given and leaves the rest"({ store }) {
    await store.put(7, fern);
    const { etag, ...renamed } = await store.update(7, { name: "Royal fern" });
    assert.deepEqual(renamed, { id: 7n, name: "Royal fern", tag: "shade" });
    assert.equal(etag, (await store.get(7)).etag);
    assert.equal((await store.update(7, { name: undefined, tag: "" })).tag, "");
    await isRefused(store.update(7, { tag: "pond" }, { ifMatch: etag }));
    assert.equal((await problemOf(store.update(8, fern))).code, "not-found");
  },

  async "throws a typed problem with all validation errors"({ store, ...world }) {
    const bad = await problemOf(store.create({ name: "", tag: "x".repeat(101) }));
    assert.deepEqual([bad.status, bad.code], [400, "invalid-request"]);
    const pointers = bad.errors.map(({ pointer }) => pointer);
    assert.deepEqual(pointers, ["/name", "/tag"]);
    assert.match(bad.requestId ?? "", /./);
    await store.create({ name: "Fern", id: 7 });
    assert.equal((await problemOf(store.create({ name: "Moss", id: 7 }))).code, "conflict");
    assert.equal((await problemOf(store.delete(8))).code, "not-found");
    const missing = await problemOf(store.get(8));
    assert.deepEqual([hasCode(missing, "not-found"), hasCode(missing, "gone")], [true, false]);
    assert.equal(await store.find(8), undefined);
    const list = collect(store.list({ limit: 1.5 }));
    assert.equal((await problemOf(list)).errors[0]?.parameter, "limit");
    const stranger = openStore(world, { token: "nobody" });
    assert.equal((await problemOf(stranger.find(8))).code, "unauthenticated");
  },

  async "reports every response with its request id, as problems have it"(world) {
    const seen: ResponseInfo[] = [];
    const store = openStore(world, { onResponse: (response) => seen.push(response) });
    await store.create({ name: "Fern" });
    const { requestId } = await problemOf(store.get(8));
    const lines = seen.map(({ method, url, status }) => [method, url, status]);
    assert.deepEqual(lines, [
      ["POST", `${world.url}/plants`, 201],
      ["GET", `${world.url}/plants/8?include=id`, 404],
    ]);
    const ids = seen.map((each) => each.requestId);
    assert.deepEqual(ids, [seen[0]?.headers.get("x-request-id"), requestId]);
    assert.ok(ids[0] && ids[0] !== ids[1]);
  },

  async "refuses what no header can hold, and an address that is none"(world) {
    assert.throws(() => openStore(world, { token: "two\nlines" }), TypeError);
    assert.throws(() => openStore(world, { headers: { key: "two\nlines" } }), TypeError);
    // Without a scheme, a browser would take the address for a path of the page's own service.
    for (const url of ["plants", "localhost:8080", "http://user@localhost"]) {
      assert.throws(() => openStore(world, { url }), TypeError);
    }
    const call = openStore(world).create({ name: "Fern" }, { idempotencyKey: "two\nlines" });
    await failure(call, TypeError);
  },
};
