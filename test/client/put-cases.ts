/** Changing plants: `put`, `update` and preconditions. */
import assert from "node:assert/strict";
import { PlantStoreProblem } from "../../client/plant-store.ts";
import { type ClientCases, failure, proxied } from "./client-case.ts";

const fern = { name: "Fern", tag: "shade" };
const royal = { name: "Royal fern", tag: "pond" };

async function isRefused(call: Promise<unknown>): Promise<void> {
  assert.equal((await failure(call, PlantStoreProblem)).code, "precondition-failed");
}

export const putCases: ClientCases = {
  async "puts a plant: new, replaced, and with its id exact"({ store }) {
    const id = 2n ** 53n + 1n;
    const { etag, ...created } = await store.put(id, { name: "Fern" });
    assert.deepEqual(created, { id, name: "Fern", tag: "", created: true });
    const { etag: later, ...replaced } = await store.put(id, royal);
    assert.deepEqual(replaced, { id, ...royal, created: false });
    assert.notEqual(etag, later);
    assert.deepEqual(await store.get(id), { id, ...royal, etag: later });
  },

  async "puts and deletes only if the precondition holds"({ store }) {
    await isRefused(store.put(7, fern, { ifMatch: "*" }));
    const { etag } = await store.put(7, fern, { ifNoneMatch: "*" });
    await isRefused(store.put(7, fern, { ifNoneMatch: "*" }));
    const later = await store.put(7, royal, { ifMatch: etag });
    await isRefused(store.put(7, fern, { ifMatch: etag }));
    await isRefused(store.delete(7, { ifMatch: etag }));
    assert.deepEqual(await store.delete(7, { ifMatch: later.etag }), { confirmed: true });
  },

  async "updates what it is given and leaves the rest"({ store }) {
    await store.put(7, fern);
    const { etag, ...renamed } = await store.update(7, { name: "Royal fern" });
    assert.deepEqual(renamed, { id: 7n, name: "Royal fern", tag: "shade" });
    assert.equal(etag, (await store.get(7)).etag);
    assert.equal((await store.update(7, { name: undefined, tag: "" })).tag, "");
    await isRefused(store.update(7, { tag: "pond" }, { ifMatch: etag }));
    const invalid = await failure(store.update(7, { name: "" }), PlantStoreProblem);
    assert.equal(invalid.errors[0]?.pointer, "/name");
    assert.equal((await failure(store.update(8, fern), PlantStoreProblem)).code, "not-found");
  },

  "stores a change once, whichever way the connection breaks": proxied(async (store, proxy) => {
    await store.put(7, { name: "first" });
    for (const breakage of ["before", "after", "midway"] as const) {
      proxy.breakNext(breakage);
      assert.equal((await store.update(7, { name: breakage })).name, breakage);
      proxy.breakNext(breakage);
      const { etag } = await store.get(7);
      const { name } = await store.update(7, { name: `${breakage} again` }, { ifMatch: etag });
      assert.equal(name, `${breakage} again`);
    }
    const { etag } = await store.get(7);
    proxy.breakNext("after");
    assert.deepEqual(await store.delete(7, { ifMatch: etag }), { confirmed: false });
    proxy.breakNext("after");
    assert.equal((await store.put(7, fern, { ifNoneMatch: "*" })).created, false);
  }),
};
