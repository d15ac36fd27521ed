/** Changing plants: `put`, `update`, preconditions, and what lost responses make of them. */
import assert from "node:assert/strict";
import { PlantStoreProblem } from "../../client/plant-store.ts";
import {
  type ClientCases,
  collect,
  failure,
  forEach,
  openStore,
  proxied,
  scripted,
} from "./client-case.ts";
import { problemAnswer, type ScriptedAnswer } from "./scripted-service.ts";

const fern = { name: "Fern", tag: "shade" };
const royal = { name: "Royal fern", tag: "pond" };
const refused = problemAnswer(412, "precondition-failed");
const lost = problemAnswer(503, "unavailable");
const limited = problemAnswer(429, "rate-limited");
const missing = problemAnswer(404, "not-found");

function plantAnswer(plant: { name: string; tag: string }, etag = '"e"'): ScriptedAnswer {
  return { status: 200, headers: { etag }, body: JSON.stringify({ id: 7, ...plant }) };
}

async function isRefused(call: Promise<unknown>): Promise<void> {
  assert.equal((await failure(call, PlantStoreProblem)).code, "precondition-failed");
}

export const putCases: ClientCases = {
  async "puts a plant: new, replaced, and with its id exact"(world) {
    const store = openStore(world);
    const id = 2n ** 53n + 1n;
    const { etag, ...created } = await store.put(id, { name: "Fern" });
    assert.deepEqual(created, { id, name: "Fern", tag: "", created: true });
    const { etag: later, ...replaced } = await store.put(id, royal);
    assert.deepEqual(replaced, { id, ...royal, created: false });
    assert.notEqual(etag, later);
    assert.deepEqual(await store.get(id), { id, ...royal, etag: later });
  },

  async "puts and deletes only if the precondition holds"(world) {
    const store = openStore(world);
    await isRefused(store.put(7, fern, { ifMatch: "*" }));
    const { etag } = await store.put(7, fern, { ifNoneMatch: "*" });
    await isRefused(store.put(7, fern, { ifNoneMatch: "*" }));
    const later = await store.put(7, royal, { ifMatch: etag });
    await isRefused(store.put(7, fern, { ifMatch: etag }));
    await isRefused(store.delete(7, { ifMatch: etag }));
    assert.deepEqual(await store.delete(7, { ifMatch: later.etag }), { confirmed: true });
  },

  async "updates what it is given and leaves the rest, by fields or by a function"(world) {
    const store = openStore(world);
    await store.put(7, fern);
    const { etag, ...renamed } = await store.update(7, { name: "Royal fern" });
    assert.deepEqual(renamed, { id: 7n, name: "Royal fern", tag: "shade" });
    assert.equal(etag, (await store.get(7)).etag);
    const moved = await store.update(7n, ({ name, tag }) => ({ tag: `${tag} of ${name}` }));
    assert.deepEqual([moved.name, moved.tag], ["Royal fern", "shade of Royal fern"]);
    assert.equal((await store.update(7, { name: undefined, tag: "" })).tag, "");
    const invalid = await failure(store.update(7, { name: "" }), PlantStoreProblem);
    assert.equal(invalid.errors[0]?.pointer, "/name");
    assert.equal((await failure(store.update(8, fern), PlantStoreProblem)).code, "not-found");
  },

  async "loses no change of two clients that rename the same plants"(world) {
    const ids = [1, 2, 3];
    const rounds = 10;
    await openStore(world).createMany(ids.map((id) => ({ id, name: "0 0" })));
    // Each counts its changes in a half of the name, and keeps the other's.
    const rename = async (half: number) => {
      const store = openStore(world);
      for (let round = 0; round < rounds; round++) {
        for (const id of ids) {
          await store.update(id, ({ name }) => {
            const counts = name.split(" ").map(Number);
            return { name: counts.with(half, (counts[half] ?? 0) + 1).join(" ") };
          });
        }
      }
    };
    await Promise.all([rename(0), rename(1)]);
    const names = (await collect(openStore(world).list())).map(({ name }) => name);
    assert.deepEqual(new Set(names), new Set([`${rounds} ${rounds}`]));
  },

  "stores a change once, whichever way the connection breaks": proxied(async (store, proxy) => {
    const words = ["first"];
    await store.put(7, { name: words.join(" ") });
    for (const breakage of ["before", "after", "midway"] as const) {
      // The read, then the put.
      proxy.breakNext(undefined, breakage);
      await store.update(7, ({ name }) => ({ name: `${name} ${breakage}` }));
      words.push(breakage);
      assert.equal((await store.get(7)).name, words.join(" "));
    }
    const { etag } = await store.get(7);
    proxy.breakNext("after");
    assert.deepEqual(await store.delete(7, { ifMatch: etag }), { confirmed: false });
    proxy.breakNext("after");
    assert.equal((await store.put(7, fern, { ifNoneMatch: "*" })).created, false);
  }),

  "sends what it read as If-Match, strong again if a proxy made it weak": scripted(
    [plantAnswer(fern, 'W/"e1"'), plantAnswer(royal, '"e2"')],
    async (store, { requests }) => {
      assert.deepEqual(await store.update(7, royal), { id: 7n, ...royal, etag: '"e2"' });
      assert.deepEqual(
        requests.map(({ method, url, headers }) => [method, url, headers["if-match"]]),
        [
          ["GET", "/plants/7?include=id", undefined],
          ["PUT", "/plants/7?include=id", '"e1"'],
        ],
      );
    },
  ),

  "never puts without a condition because a proxy removed the etag": scripted(
    [{ ...plantAnswer(fern), headers: {} }, problemAnswer(400, "invalid-request")],
    async (store, { requests }) => {
      assert.equal((await failure(store.update(7, royal), PlantStoreProblem)).status, 400);
      assert.equal(requests[1]?.headers["if-match"], "");
    },
  ),

  "starts an update over on a plant that somebody else has changed": scripted(
    [plantAnswer(fern, '"e1"'), refused, plantAnswer(royal, '"e2"'), plantAnswer(fern, '"e3"')],
    async (store, { requests }) => {
      const seen: string[] = [];
      await store.update(7, ({ tag }) => {
        seen.push(tag);
        return { name: "Tree fern" };
      });
      assert.deepEqual(seen, [fern.tag, royal.tag]);
      assert.equal(requests[3]?.headers["if-match"], '"e2"');
    },
  ),

  "settles a 412 after a lost response by reading, and a 404 without": scripted(
    [lost, refused, plantAnswer(fern), lost, missing],
    async (store) => {
      const put = await store.put(7, fern, { ifMatch: '"old"' });
      assert.deepEqual(put, { id: 7n, ...fern, etag: '"e"', created: false });
      assert.deepEqual(await store.delete(7, { ifMatch: '"e"' }), { confirmed: false });
    },
  ),

  "throws a 412 if the plant is another or none, or if no response was lost": forEach(
    [
      [lost, refused, plantAnswer(royal)],
      [lost, refused, missing],
      [refused, plantAnswer(fern)],
      [limited, refused, plantAnswer(fern)],
    ],
    (script) => scripted(script, (store) => isRefused(store.put(7, fern, { ifMatch: '"old"' }))),
  ),

  "throws the 412 of a deletion: the plant is still there": scripted([lost, refused], (store) =>
    isRefused(store.delete(7, { ifMatch: '"old"' })),
  ),
};
