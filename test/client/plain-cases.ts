/**
 * The client against a running service, with nothing in between: what goes in comes back, exactly.
 */
import assert from "node:assert/strict";
import { PlantStoreProblem, PlantStoreUnreachable } from "../../src/client/plant-store.ts";
import { type ClientCase, collect, failure, openStore } from "./client-case.ts";

const idMax = 2n ** 63n - 1n;

export const plainCases: readonly ClientCase[] = [
  {
    name: "creates, lists and deletes a plant",
    async run(world) {
      const store = openStore(world);
      const created = await store.create({ name: "Fern", tag: "shade" });
      assert.deepEqual(created, { id: 1n, name: "Fern", tag: "shade", replayed: false });
      assert.deepEqual(await collect(store.list()), [{ id: 1n, name: "Fern", tag: "shade" }]);
      assert.deepEqual(await store.delete(created.id), { confirmed: true });
      assert.deepEqual(await collect(store.list()), []);
    },
  },
  {
    name: "keeps every id exact, both ways",
    async run(world) {
      const store = openStore(world);
      const ids = [-(2n ** 63n), -(2n ** 53n) - 1n, -1n, 0n, 7n, 2n ** 53n + 1n, idMax - 1n, idMax];
      for (const id of ids) assert.equal((await store.create({ name: "Fern", id })).id, id);
      const found = await collect(store.list({ pageSize: 3 }));
      assert.deepEqual(
        found.map((plant) => plant.id),
        ids,
      );
      for (const id of ids) assert.deepEqual(await store.delete(id), { confirmed: true });
    },
  },
  {
    name: "is not confused by names that look like JSON",
    async run(world) {
      const store = openStore(world);
      const names = [
        '"id":1',
        '\\"id\\":9007199254740993,',
        '{"id":1}',
        "\\",
        '"',
        "-1e5",
        "ü\u2028",
      ];
      const id = 2n ** 53n + 1n;
      for (const [index, name] of names.entries()) {
        await store.create({ name, tag: name, id: id + BigInt(index) });
      }
      assert.deepEqual(
        await collect(store.list()),
        names.map((name, index) => ({ id: id + BigInt(index), name, tag: name })),
      );
    },
  },
  {
    name: "takes safe integers for ids and refuses numbers that may be rounded",
    async run(world) {
      const store = openStore(world);
      assert.equal((await store.create({ name: "Fern", id: 7 })).id, 7n);
      for (const id of [2 ** 53, 1.5, Number.NaN]) {
        await failure(store.create({ name: "Fern", id }), RangeError);
        await failure(store.delete(id), RangeError);
      }
      assert.deepEqual(await store.delete(7), { confirmed: true });
    },
  },
  {
    name: "follows the links from page to page, up to the limit and after an id",
    async run(world) {
      const store = openStore(world);
      for (let id = 1; id <= 7; id++) await store.create({ name: `Plant ${id}`, id });
      const idsOf = async (options: Parameters<typeof store.list>[0]) =>
        (await collect(store.list(options))).map(({ id }) => Number(id));
      const all = [1, 2, 3, 4, 5, 6, 7];
      for (const pageSize of [1, 2, 3, 6, 7, 8, undefined]) {
        assert.deepEqual(await idsOf({ pageSize }), all);
        for (const limit of [0, 1, 3, 6, 7, 8]) {
          assert.deepEqual(await idsOf({ pageSize, limit }), all.slice(0, limit));
        }
        assert.deepEqual(await idsOf({ pageSize, after: 2, limit: 3 }), [3, 4, 5]);
      }
      const pages = await collect(store.pages({ pageSize: 3, fields: ["name"] }));
      assert.deepEqual(
        pages.map((page) => page.length),
        [3, 3, 1],
      );
      assert.deepEqual(pages[0]?.[0], { name: "Plant 1" });
      const first = await store.page({ limit: 5 });
      assert.deepEqual([first.plants.length, first.next], [5, 5n]);
      const last = await store.page({ limit: 5, after: first.next });
      assert.deepEqual([last.plants.length, last.next], [2, undefined]);
    },
  },
  {
    name: "throws a typed problem with all validation errors",
    async run(world) {
      const store = openStore(world);
      const bad = await failure(
        store.create({ name: "", tag: "x".repeat(101) }),
        PlantStoreProblem,
      );
      assert.equal(bad.status, 400);
      assert.equal(bad.code, "invalid-request");
      assert.deepEqual(
        bad.errors.map(({ pointer }) => pointer),
        ["/name", "/tag"],
      );
      assert.match(bad.requestId ?? "", /./);
      await store.create({ name: "Fern", id: 7 });
      const taken = await failure(store.create({ name: "Moss", id: 7 }), PlantStoreProblem);
      assert.deepEqual([taken.status, taken.code], [409, "conflict"]);
      const gone = await failure(store.delete(8), PlantStoreProblem);
      assert.deepEqual([gone.status, gone.code], [404, "not-found"]);
      for (const limit of [-1, 1.5, Number.NaN]) {
        const list = collect(store.list({ limit }));
        assert.equal((await failure(list, PlantStoreProblem)).errors[0]?.parameter, "limit");
      }
      const stranger = openStore(world, { token: "nobody" });
      const refused = await failure(stranger.create({ name: "Fern" }), PlantStoreProblem);
      assert.deepEqual([refused.status, refused.code], [401, "unauthenticated"]);
    },
  },
  {
    name: "returns the first response again for a key that was used",
    async run(world) {
      const store = openStore(world);
      const options = { idempotencyKey: "order-17" };
      const first = await store.create({ name: "Fern" }, options);
      assert.deepEqual(await store.create({ name: "Fern" }, options), { ...first, replayed: true });
      const other = await failure(store.create({ name: "Moss" }, options), PlantStoreProblem);
      assert.equal(other.code, "idempotency-mismatch");
      assert.equal((await collect(store.list())).length, 1);
    },
  },
  {
    name: "treats retries that are not a number as none",
    async run() {
      const away = { url: "http://127.0.0.1:1", token: "t" };
      const store = openStore(away, { retries: Number.NaN });
      const { tries } = await failure(collect(store.list()), PlantStoreUnreachable);
      assert.equal(tries, 1);
    },
  },
  {
    name: "waits without a limit where it is configured to",
    async run(world) {
      const slowly = async (_address: string, { signal }: RequestInit) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        signal?.throwIfAborted();
        return new Response("[]");
      };
      for (const timeoutMs of [2 ** 31, Number.POSITIVE_INFINITY]) {
        const store = openStore(world, { timeoutMs, retries: 0, fetch: slowly });
        assert.deepEqual(await collect(store.list()), []);
      }
    },
  },
  {
    name: "refuses what no header can hold, and an address that is none",
    async run(world) {
      assert.throws(() => openStore(world, { token: "two\nlines" }), TypeError);
      assert.throws(() => openStore(world, { url: "plants" }), TypeError);
      // Without a scheme, a browser would take the address for a path of the page's own service.
      for (const url of ["localhost:8080", "ftp://localhost", "file:///plants"]) {
        assert.throws(() => openStore(world, { url }), TypeError);
      }
      for (const person of ["user:word", "user", ":word"]) {
        assert.throws(() => openStore(world, { url: `http://${person}@localhost` }), TypeError);
      }
      const call = openStore(world).create({ name: "Fern" }, { idempotencyKey: "two\nlines" });
      await failure(call, TypeError);
    },
  },
];
