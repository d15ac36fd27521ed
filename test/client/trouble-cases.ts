/** The client when connections break, and when responses are late or lost. */
import assert from "node:assert/strict";
import { PlantStoreUnreachable } from "../../client/plant-store.ts";
import { type ClientCases, collect, failure, openStore, proxied } from "./client-case.ts";

/** No response, until the request is given up. */
const staySilent = (_url: string, { signal }: RequestInit) =>
  new Promise<Response>((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason));
  });

export const troubleCases: ClientCases = {
  "creates each plant once, whichever way connections break": proxied(async (store, proxy) => {
    for (const breakage of ["before", "after", "midway"] as const) {
      for (let round = 0; round < 2; round++) {
        proxy.breakNext(breakage);
        const created = await store.create({ name: `${breakage} ${round}` });
        assert.equal(created.replayed, breakage !== "before");
        // On a connection that has served before, too.
        await store.create({ name: `not ${breakage} ${round}` });
      }
    }
    proxy.breakNext("before", "after", "midway", "before");
    await store.create({ name: "a series" });
    const names = (await collect(store.list())).map(({ name }) => name);
    assert.deepEqual([names.length, new Set(names).size], [13, 13]);
  }),

  "changes and deletes a plant once, and says if a deletion is not confirmed": proxied(
    async (store, proxy) => {
      await store.put(7, { name: "first" });
      for (const breakage of ["before", "after", "midway"] as const) {
        proxy.breakNext(breakage);
        const { etag } = await store.get(7);
        proxy.breakNext(breakage);
        const { name } = await store.update(7, { name: breakage }, { ifMatch: etag });
        assert.equal(name, breakage);
      }
      proxy.breakNext("after");
      assert.deepEqual(await store.delete(7), { confirmed: false });
      proxy.breakNext("after");
      assert.equal((await store.put(7, { name: "Fern" }, { ifNoneMatch: "*" })).created, false);
      proxy.breakNext("before");
      assert.deepEqual(await store.delete(7), { confirmed: true });
    },
  ),

  "tries again when no response comes in time or at all, then gives up and says why": proxied(
    async (store, proxy, world) => {
      const error = await failure(store.create({ name: "Fern" }), PlantStoreUnreachable);
      assert.equal(error.tries, 2);
      assert.match(error.message, /no response within 50 ms/);
      proxy.close();
      for (const host of ["127.0.0.1", "localhost"]) {
        const url = proxy.url.replace("127.0.0.1", host);
        const closed = openStore(world, { url, retries: 1 });
        const refused = await failure(closed.delete(1), PlantStoreUnreachable);
        assert.match(refused.message, /ECONNREFUSED/);
      }
    },
    { fetch: staySilent, timeoutMs: 50, retries: 1 },
  ),

  "gives up at its deadline, however many retries are left": proxied(
    async (store, proxy) => {
      proxy.isSilent = true;
      const late = await failure(store.create({ name: "Fern" }), PlantStoreUnreachable);
      assert.match(late.message, /in [12] tries: no response within \d+ ms$/);
      proxy.close();
      await failure(store.create({ name: "Fern" }), PlantStoreUnreachable);
    },
    // Two tries and the pauses after them take at least 350 ms.
    { deadlineMs: 300, timeoutMs: 100, retries: 1_000 },
  ),

  "has its own timeout, deadline and retries for a call, if they are given": proxied(
    async (store, proxy) => {
      proxy.isSilent = true;
      const short = await failure(store.me({ timeoutMs: 50, retries: 1 }), PlantStoreUnreachable);
      assert.match(short.message, /in 2 tries: no response within 50 ms$/);
      const options = { deadlineMs: 60, retries: 0 };
      const calls = [
        store.create({ name: "Fern" }, options),
        store.createMany([{ name: "Fern" }], options),
        store.get(7, options),
        store.find(7, options),
        store.put(7, { name: "Fern" }, options),
        store.update(7, { name: "Fern" }, options),
        store.updateMany([7], { name: "Fern" }, options),
        store.delete(7, options),
        store.deleteMany([7], options),
        store.page(options),
        store.eventPage(options),
        ...[store.list(options), store.pages(options), store.tags(options)].map(collect<unknown>),
        ...[{ after: 0 }, {}].map((from) => collect(store.events({ ...from, ...options }))),
      ];
      for (const error of await Promise.all(calls.map((call) => failure(call, Error)))) {
        assert.match(error.message, /in 1 tries: no response within [56]\d ms$/);
      }
    },
  ),

  "stops at once when it is aborted: before, during and between tries": proxied(
    async (store, proxy) => {
      const reason = new RangeError("enough");
      const before = store.create({ name: "Fern" }, { signal: AbortSignal.abort(reason) });
      assert.equal(await failure(before, RangeError), reason);
      const abortSoon = async () => {
        const controller = new AbortController();
        setTimeout(() => controller.abort(reason), 50);
        const deletion = store.delete(1, { signal: controller.signal });
        assert.equal(await failure(deletion, RangeError), reason);
      };
      proxy.breakNext("silent");
      await abortSoon();
      proxy.close();
      await abortSoon();
    },
    { retries: 1_000 },
  ),
};
