/**
 * The client against a running service, with nothing in between: what goes in comes back, exactly.
 */
import assert from "node:assert/strict";
import { PlantStoreProblem } from "../../client/plant-store.ts";
import { type ClientCases, collect, failure, openStore } from "./client-case.ts";

const idMax = 2n ** 63n - 1n;

export const plainCases: ClientCases = {
  async "keeps every id exact, both ways, whatever names look like"({ store }) {
    const ids = [-(2n ** 63n), -(2n ** 53n) - 1n, -1n, 0n, 7n, 2n ** 53n + 1n, idMax];
    const names = [
      '"id":1',
      '\\"id\\":9007199254740993,',
      '{"id":1}',
      "\\",
      '"',
      "-1e5",
      "ü\u2028",
    ];
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
  },

  async "takes safe integers for ids and refuses numbers that may be rounded"({ store }) {
    assert.equal((await store.create({ name: "Fern", id: 7 })).id, 7n);
    for (const id of [2 ** 53, 1.5, Number.NaN]) {
      await failure(store.create({ name: "Fern", id }), RangeError);
      await failure(store.delete(id), RangeError);
    }
    assert.deepEqual(await store.delete(7), { confirmed: true });
  },

  async "follows the links from page to page, up to the limit and after an id"({ store }) {
    for (let id = 1; id <= 7; id++) await store.create({ name: `Plant ${id}`, id });
    const idsOf = async (options: Parameters<typeof store.list>[0]) =>
      (await collect(store.list(options))).map(({ id }) => Number(id));
    const all = [1, 2, 3, 4, 5, 6, 7];
    for (const pageSize of [1, 3, 7, undefined]) {
      assert.deepEqual(await idsOf({ pageSize }), all);
      for (const limit of [0, 1, 3, 6, 7, 8]) {
        assert.deepEqual(await idsOf({ pageSize, limit }), all.slice(0, limit));
      }
      assert.deepEqual(await idsOf({ pageSize, after: 2, limit: 3 }), [3, 4, 5]);
    }
    const pages = await collect(store.pages({ pageSize: 6 }));
    assert.deepEqual([pages.length, pages[1]], [2, [{ id: 7n, name: "Plant 7", tag: "" }]]);
    const first = await store.page({ limit: 5 });
    assert.deepEqual([first.plants.length, first.next], [5, 5n]);
    const last = await store.page({ limit: 5, after: first.next });
    assert.deepEqual([last.plants.length, last.next], [2, undefined]);
    assert.deepEqual(await store.page({ limit: 0 }), { plants: [], next: undefined });
    await failure(collect(store.list({ pageSize: 0 })), RangeError);
  },

  async "asks for 1,000 plants at a time, if it is to ask for more"({ store }) {
    await store.createMany(Array.from({ length: 1_101 }, () => ({ name: "Fern" })));
    assert.equal((await collect(store.list({ pageSize: 1_100 }))).length, 1_101);
    assert.equal((await store.page({ limit: 1_100 })).next, 1_000n);
  },

  async "finds plants by words and by tag, and lists the newest first"({ store }) {
    const plants = [{ name: "Royal fern", tag: "a&b" }, { name: "Ivy" }, { name: "Crème fern" }];
    await store.createMany(plants);
    const find = async (options: Parameters<typeof store.list>[0]) =>
      (await collect(store.list({ pageSize: 1, ...options }))).map(({ name }) => name);
    assert.deepEqual(await find({ q: "FERN" }), ["Royal fern", "Crème fern"]);
    assert.deepEqual(await find({ tag: "a&b" }), ["Royal fern"]);
    assert.deepEqual(await find({ tag: "", order: "desc" }), ["Crème fern", "Ivy"]);
    assert.deepEqual(await find({ order: "desc", after: 3, limit: 1 }), ["Ivy"]);
  },

  async "counts plants by tag, page by page"({ store }) {
    const tags = Array.from({ length: 1_002 }, (_, index) => `tag ${10_000 + index}`);
    await store.createMany([...tags, "", "tag 10000"].map((tag) => ({ name: "Fern", tag })));
    const counts = await collect(store.tags());
    assert.deepEqual(counts.slice(0, 3), [
      { tag: "", plants: 1 },
      { tag: "tag 10000", plants: 2 },
      { tag: "tag 10001", plants: 1 },
    ]);
    assert.equal(counts.length, 1_003);
    const some = await collect(store.tags({ after: "tag 10999", limit: 1 }));
    assert.deepEqual(some, [{ tag: "tag 11000", plants: 1 }]);
    assert.deepEqual(await collect(store.tags({ limit: 0 })), []);
  },

  async "throws a typed problem with all validation errors"({ store, ...world }) {
    const problemOf = (call: Promise<unknown>) => failure(call, PlantStoreProblem);
    const bad = await problemOf(store.create({ name: "", tag: "x".repeat(101) }));
    assert.deepEqual([bad.status, bad.code], [400, "invalid-request"]);
    assert.deepEqual(
      bad.errors.map(({ pointer }) => pointer),
      ["/name", "/tag"],
    );
    assert.match(bad.requestId ?? "", /./);
    await store.create({ name: "Fern", id: 7 });
    assert.equal((await problemOf(store.create({ name: "Moss", id: 7 }))).code, "conflict");
    assert.equal((await problemOf(store.delete(8))).code, "not-found");
    assert.equal((await problemOf(store.get(8))).code, "not-found");
    assert.equal(await store.find(8), undefined);
    const list = collect(store.list({ limit: 1.5 }));
    assert.equal((await problemOf(list)).errors[0]?.parameter, "limit");
    const stranger = openStore(world, { token: "nobody" });
    assert.equal((await problemOf(stranger.find(8))).code, "unauthenticated");
  },

  async "refuses what no header can hold, and an address that is none"(world) {
    assert.throws(() => openStore(world, { token: "two\nlines" }), TypeError);
    // Without a scheme, a browser would take the address for a path of the page's own service.
    for (const url of ["plants", "localhost:8080", "file:///plants", "http://user@localhost"]) {
      assert.throws(() => openStore(world, { url }), TypeError);
    }
    const call = openStore(world).create({ name: "Fern" }, { idempotencyKey: "two\nlines" });
    await failure(call, TypeError);
  },
};
