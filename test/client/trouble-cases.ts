/**
 * The client when connections break, and when responses are late or lost.
 */
import assert from "node:assert/strict";
import { PlantStoreProblem, PlantStoreUnreachable } from "../../src/client/plant-store.ts";
import { type ClientCase, collect, failure, openStore } from "./client-case.ts";
import { openFaultyProxy } from "./faulty-proxy.ts";

/** Long enough for a busy machine to store a plant. */
const fewMs = 1_000;

export const troubleCases: readonly ClientCase[] = [
  ...(["before", "after", "midway"] as const).map(
    (breakage): ClientCase => ({
      name: `creates one plant, and one only, when the connection breaks: ${breakage}`,
      async run(world) {
        const proxy = await openFaultyProxy(world.url);
        const store = openStore(world, { url: proxy.url });
        for (let round = 0; round < 5; round++) {
          proxy.breakNext(breakage);
          const created = await store.create({ name: `Fern ${round}` });
          assert.equal(created.replayed, breakage !== "before");
          // On a connection that has served before, too.
          await store.create({ name: `Moss ${round}` });
        }
        proxy.close();
        const names = (await collect(openStore(world).list())).map(({ name }) => name);
        assert.equal(names.length, 10);
        assert.equal(new Set(names).size, 10);
      },
    }),
  ),
  {
    name: "creates one plant through a series of different failures",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      proxy.breakNext("before", "after", "midway", "before");
      const store = openStore(world, { url: proxy.url });
      assert.equal((await store.create({ name: "Fern", id: 7 })).id, 7n);
      proxy.close();
      assert.equal((await collect(openStore(world).list())).length, 1);
    },
  },
  {
    name: "lists every plant once although responses break off midway",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      const store = openStore(world, { url: proxy.url });
      for (let id = 1; id <= 9; id++) await store.create({ name: `Plant ${id}`, id });
      const seen: number[] = [];
      for await (const { id } of store.list({ pageSize: 2 })) {
        seen.push(Number(id));
        if (Number(id) % 2 === 0) proxy.breakNext("midway");
      }
      proxy.close();
      assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    },
  },
  {
    name: "says that a deletion is not confirmed when its response was lost",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      const store = openStore(world, { url: proxy.url });
      await store.create({ name: "Fern", id: 7 });
      await store.create({ name: "Moss", id: 8 });
      proxy.breakNext("after");
      assert.deepEqual(await store.delete(7), { confirmed: false });
      proxy.breakNext("before");
      assert.deepEqual(await store.delete(8), { confirmed: true });
      proxy.close();
    },
  },
  {
    name: "tries again when a response does not come in time",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      const store = openStore(world, { url: proxy.url, timeoutMs: fewMs });
      proxy.breakNext("silent");
      const created = await store.create({ name: "Fern" });
      assert.equal(created.replayed, true);
      proxy.close();
    },
  },
  {
    name: "gives up after its tries, and says why",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      proxy.breakNext("silent", "silent", "silent");
      const store = openStore(world, { url: proxy.url, timeoutMs: fewMs, retries: 1 });
      const error = await failure(store.create({ name: "Fern" }), PlantStoreUnreachable);
      assert.equal(error.tries, 2);
      assert.match(error.message, /no response within 1000 ms/);
      proxy.close();
      for (const host of ["127.0.0.1", "localhost"]) {
        const url = proxy.url.replace("127.0.0.1", host);
        const closed = openStore(world, { url, retries: 1 });
        const refused = await failure(closed.delete(1), PlantStoreUnreachable);
        assert.equal(refused.tries, 2);
        assert.match(refused.message, /ECONNREFUSED/);
      }
      assert.equal((await collect(openStore(world).list())).length, 1);
    },
  },
  {
    name: "stops at once when it is aborted: before, during and between tries",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      const store = openStore(world, { url: proxy.url });
      const reason = new RangeError("enough");
      const before = store.create({ name: "Fern" }, { signal: AbortSignal.abort(reason) });
      assert.equal(await failure(before, RangeError), reason);

      proxy.breakNext("silent");
      const during = new AbortController();
      setTimeout(() => during.abort(reason), fewMs);
      const list = collect(store.list({ signal: during.signal }));
      assert.equal(await failure(list, RangeError), reason);

      proxy.close();
      const between = new AbortController();
      setTimeout(() => between.abort(reason), fewMs);
      const patient = openStore(world, { url: proxy.url, retries: 1_000 });
      const deletion = patient.delete(1, { signal: between.signal });
      assert.equal(await failure(deletion, RangeError), reason);
    },
  },
  {
    name: "throws the problem, not a lost connection, when a retry is refused",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      const store = openStore(world, { url: proxy.url });
      proxy.breakNext("before", "before");
      assert.equal((await failure(store.create({ name: "" }), PlantStoreProblem)).status, 400);
      proxy.close();
    },
  },
  {
    name: "lets many calls share a signal without a warning of a leak",
    async run(world) {
      const warnings: Error[] = [];
      const keep = (warning: Error) => warnings.push(warning);
      process.on("warning", keep);
      const store = openStore(world);
      const { signal } = new AbortController();
      const names = Array.from({ length: 30 }, (_, index) => `Plant ${index}`);
      await Promise.all(names.map((name) => store.create({ name }, { signal })));
      await new Promise((resolve) => setTimeout(resolve, 10));
      process.off("warning", keep);
      assert.deepEqual(warnings, []);
    },
  },
];
