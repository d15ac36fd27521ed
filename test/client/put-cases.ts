/** Changing plants: `put`, `update`, preconditions, and what lost responses make of them. */
import assert from "node:assert/strict";
import { PlantStoreProblem } from "../../src/client/plant-store.ts";
import { type ClientCase, collect, failure, openStore } from "./client-case.ts";
import { openFaultyProxy } from "./faulty-proxy.ts";
import { scripted } from "./scripted-cases.ts";
import { problemAnswer, type ScriptedAnswer } from "./scripted-service.ts";

const fern = { name: "Fern", tag: "shade" };
const royal = { name: "Royal fern", tag: "pond" };
const refused = problemAnswer(412, "precondition-failed");
const lost = problemAnswer(503, "unavailable");

function plantAnswer(plant: { name: string; tag: string }, etag = '"e"'): ScriptedAnswer {
  return { status: 200, headers: { etag }, body: JSON.stringify({ id: 7, ...plant }) };
}

export const putCases: readonly ClientCase[] = [
  {
    name: "puts a plant: new, replaced, and with its id exact",
    async run(world) {
      const store = openStore(world);
      const id = 2n ** 53n + 1n;
      const { etag, ...created } = await store.put(id, { name: "Fern" });
      assert.deepEqual(created, { id, name: "Fern", tag: "", created: true });
      const { etag: later, ...replaced } = await store.put(id, royal);
      assert.deepEqual(replaced, { id, ...royal, created: false });
      assert.notEqual(etag, later);
      assert.deepEqual(await store.get(id), { id, ...royal, etag: later });
    },
  },
  {
    name: "puts and deletes only if the precondition holds",
    async run(world) {
      const store = openStore(world);
      const isRefused = async (call: Promise<unknown>) =>
        assert.equal((await failure(call, PlantStoreProblem)).code, "precondition-failed");
      await isRefused(store.put(7, fern, { ifMatch: "*" }));
      const { etag } = await store.put(7, fern, { ifNoneMatch: "*" });
      await isRefused(store.put(7, fern, { ifNoneMatch: "*" }));
      const later = await store.put(7, royal, { ifMatch: etag });
      await isRefused(store.put(7, fern, { ifMatch: etag }));
      await isRefused(store.delete(7, { ifMatch: etag }));
      assert.deepEqual(await store.delete(7, { ifMatch: later.etag }), { confirmed: true });
    },
  },
  {
    name: "updates what it is given and leaves the rest, by fields or by a function",
    async run(world) {
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
      const missing = await failure(store.update(8, fern), PlantStoreProblem);
      assert.equal(missing.code, "not-found");
    },
  },
  {
    name: "loses no change of two clients that rename the same plants, and no read finds none",
    async run(world) {
      const ids = [1, 2, 3];
      const rounds = 20;
      const stores = [openStore(world), openStore(world)];
      for (const id of ids) await stores[0]?.put(id, { name: "0 0" });
      let isDone = false;
      const reads = (async () => {
        for (let count = 0; ; count++) {
          if (isDone) return count;
          for (const id of ids) await openStore(world).get(id);
        }
      })();
      // Each counts its changes in a half of the name, and keeps the other's.
      const rename = async (half: number) => {
        for (let round = 0; round < rounds; round++) {
          for (const id of ids) {
            await stores[half]?.update(id, ({ name }) => {
              const counts = name.split(" ").map(Number);
              return { name: counts.with(half, (counts[half] ?? 0) + 1).join(" ") };
            });
          }
        }
      };
      await Promise.all([rename(0), rename(1)]).finally(() => {
        isDone = true;
      });
      assert.ok((await reads) > 0);
      const names = (await collect(openStore(world).list())).map(({ name }) => name);
      assert.deepEqual(
        names,
        ids.map(() => `${rounds} ${rounds}`),
      );
    },
  },
  {
    name: "stores a change once, whichever way the connection breaks",
    async run(world) {
      const proxy = await openFaultyProxy(world.url);
      const store = openStore(world, { url: proxy.url });
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
      proxy.close();
    },
  },
  scripted(
    "sends what it read as If-Match, strong again if a proxy made it weak",
    [plantAnswer(fern, 'W/"e1"'), plantAnswer(royal, '"e2"')],
    async (store, { requests }) => {
      assert.deepEqual(await store.update(7, royal), { id: 7n, ...royal, etag: '"e2"' });
      assert.deepEqual(
        requests.map(({ method, url, headers }) => [method, url, headers["if-match"]]),
        [
          ["GET", "/plants/7?fields=id,name,tag", undefined],
          ["PUT", "/plants/7?fields=id,name,tag", '"e1"'],
        ],
      );
    },
  ),
  scripted(
    "never puts without a condition because a proxy removed the etag",
    [{ ...plantAnswer(fern), headers: {} }, problemAnswer(400, "invalid-request")],
    async (store, { requests }) => {
      assert.equal((await failure(store.update(7, royal), PlantStoreProblem)).status, 400);
      assert.equal(requests[1]?.headers["if-match"], "");
    },
  ),
  scripted("puts nothing if nothing changes", [plantAnswer(fern)], async (store, { requests }) => {
    assert.deepEqual(await store.update(7, fern), { id: 7n, ...fern, etag: '"e"' });
    assert.equal(requests.length, 1);
  }),
  scripted(
    "starts an update over on a plant that somebody else has changed",
    [
      plantAnswer(fern, '"e1"'),
      refused,
      plantAnswer({ ...fern, tag: "hall" }, '"e2"'),
      plantAnswer({ ...royal, tag: "hall" }, '"e3"'),
    ],
    async (store, { requests }) => {
      const seen: string[] = [];
      await store.update(7, ({ tag }) => {
        seen.push(tag);
        return { name: royal.name };
      });
      assert.deepEqual(seen, ["shade", "hall"]);
      assert.equal(requests[3]?.headers["if-match"], '"e2"');
    },
  ),
  {
    name: "gives an update up with the problem after 100 tries, and at once if it is aborted",
    async run(world) {
      let puts = 0;
      const fetch = async (_url: string, { method }: RequestInit) => {
        if (method === "PUT") puts++;
        const { status, headers = {}, body = "" } = method === "PUT" ? refused : plantAnswer(fern);
        return new Response(body, { status, headers });
      };
      const store = openStore(world, { fetch });
      const problem = await failure(store.update(7, royal), PlantStoreProblem);
      assert.deepEqual([problem.code, puts], ["precondition-failed", 100]);
      const reason = new RangeError("enough");
      const aborted = store.update(7, royal, { signal: AbortSignal.abort(reason) });
      assert.equal(await failure(aborted, RangeError), reason);
    },
  },
  scripted(
    "settles a 412 after a lost response by reading: the plant is what was put",
    [lost, refused, plantAnswer({ name: "Fern", tag: "" })],
    async (store, { requests }) => {
      const put = await store.put(7, { name: "Fern" }, { ifMatch: '"old"' });
      assert.deepEqual(put, { id: 7n, name: "Fern", tag: "", etag: '"e"', created: false });
      assert.equal(requests.length, 3);
    },
  ),
  ...[
    { what: "another plant", answers: [lost, refused, plantAnswer(royal)] },
    { what: "no plant", answers: [lost, refused, problemAnswer(404, "not-found")] },
    { what: "whatever is there: no response was lost", answers: [refused, plantAnswer(fern)] },
    {
      what: "whatever is there: a 429 did nothing",
      answers: [problemAnswer(429, "rate-limited"), refused, plantAnswer(fern)],
    },
  ].map(({ what, answers }) =>
    scripted(`throws a 412 if there is ${what}`, answers, async (store) => {
      const put = store.put(7, fern, { ifMatch: '"old"' });
      assert.equal((await failure(put, PlantStoreProblem)).code, "precondition-failed");
    }),
  ),
  scripted(
    "throws the 412 of a deletion if the plant is still there",
    [lost, refused, plantAnswer(fern)],
    async (store) => {
      const deletion = store.delete(7, { ifMatch: '"old"' });
      assert.equal((await failure(deletion, PlantStoreProblem)).code, "precondition-failed");
    },
  ),
  scripted(
    "takes a deletion for unconfirmed if its retry is a 412 and the plant is gone",
    [lost, refused, problemAnswer(404, "not-found")],
    async (store) => {
      assert.deepEqual(await store.delete(7, { ifMatch: '"e"' }), { confirmed: false });
    },
  ),
];
