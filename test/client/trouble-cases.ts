/** The client when connections break, and when responses are late or lost. */
import assert from "node:assert/strict";
import { type PlantStore, PlantStoreUnreachable } from "../../client/plant-store.ts";
import type { FaultyProxy } from "../../testing/faulty-proxy.ts";
import { type ClientCases, collect, failure, openStore, proxied } from "./client-case.ts";

/** A `fetch` that gets no response until the request is given up. */
const staySilent = (_url: string, { signal }: RequestInit) =>
  new Promise<Response>((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason));
  });

/** Creates plants on connections that break like this, and on the next ones: each is there once. */
async function createTwiceOnBroken(
  { store, proxy }: { store: PlantStore; proxy: FaultyProxy },
  breakage: "before" | "after" | "midway",
): Promise<void> {
  for (const round of ["first", "second"]) {
    proxy.breakNext(breakage);
    const created = await store.create({ name: `${round}, ${breakage}` });
    // Only if the first request was lost, the second one creates the plant.
    assert.equal(created.replayed, breakage !== "before");
    // This connection has served before when it breaks in the second round.
    await store.create({ name: `${round}, not broken` });
  }
  const names = (await collect(store.list())).map(({ name }) => name);
  assert.deepEqual(names, [
    `first, ${breakage}`,
    "first, not broken",
    `second, ${breakage}`,
    "second, not broken",
  ]);
}

/** Reads and updates a plant on connections that break like this. */
async function updateOnBroken(
  { store, proxy }: { store: PlantStore; proxy: FaultyProxy },
  breakage: "before" | "after" | "midway",
): Promise<void> {
  await store.put(7, { name: "Fern" });

  proxy.breakNext(breakage);
  const { etag } = await store.get(7);
  proxy.breakNext(breakage);
  const updated = await store.update(7, { name: "Royal fern" }, { ifMatch: etag });

  assert.equal(updated.name, "Royal fern");
}

const brokenConnectionCases: ClientCases = {
  "creates a plant once if the request is lost": proxied((world) =>
    createTwiceOnBroken(world, "before"),
  ),

  "creates a plant once if the response is lost": proxied((world) =>
    createTwiceOnBroken(world, "after"),
  ),

  "creates a plant once if the response is cut off": proxied((world) =>
    createTwiceOnBroken(world, "midway"),
  ),

  "creates a plant once, even if four connections break one after the other": proxied(
    async ({ store, proxy }) => {
      proxy.breakNext("before", "after", "midway", "before");

      await store.create({ name: "Fern" });

      assert.equal((await store.me()).plants, 1);
    },
  ),

  "updates a plant by its ETag if the request is lost": proxied((world) =>
    updateOnBroken(world, "before"),
  ),

  "updates a plant by its ETag if the response is lost": proxied((world) =>
    updateOnBroken(world, "after"),
  ),

  "updates a plant by its ETag if the response is cut off": proxied((world) =>
    updateOnBroken(world, "midway"),
  ),

  "doesn't confirm a deletion whose response was lost": proxied(async ({ store, proxy }) => {
    await store.put(7, { name: "Fern" });

    proxy.breakNext("after");

    assert.deepEqual(await store.delete(7), { confirmed: false });
  }),

  "confirms a deletion if the request was lost and sent again": proxied(
    async ({ store, proxy }) => {
      await store.put(7, { name: "Fern" });

      proxy.breakNext("before");

      assert.deepEqual(await store.delete(7), { confirmed: true });
    },
  ),

  "takes a plant that it put before a response was lost for its own": proxied(
    async ({ store, proxy }) => {
      proxy.breakNext("after");

      // The second try gets a 412, so nobody can say that it was created.
      const put = await store.put(7, { name: "Fern" }, { ifNoneMatch: "*" });

      assert.equal(put.created, false);
    },
  ),
};

const lateResponseCases: ClientCases = {
  "tries again without a response in time, then gives up and says why": proxied(
    async ({ store }) => {
      const error = await failure(store.create({ name: "Fern" }), PlantStoreUnreachable);

      assert.equal(error.tries, 2);
      assert.match(error.message, /no response within 50 ms/);
    },
    { fetch: staySilent, timeoutMs: 50, retries: 1 },
  ),

  "says that the connection was refused, for an address and for a name": proxied(
    async ({ proxy, token }) => {
      proxy.close();

      const byAddress = openStore({ url: proxy.url, token }, { retries: 1 });
      const byName = openStore(
        { url: proxy.url.replace("127.0.0.1", "localhost"), token },
        { retries: 1 },
      );

      const atAddress = await failure(byAddress.delete(1), PlantStoreUnreachable);
      assert.match(atAddress.message, /ECONNREFUSED/);
      const atName = await failure(byName.delete(1), PlantStoreUnreachable);
      assert.match(atName.message, /ECONNREFUSED/);
    },
  ),

  "gives up at its deadline if no response comes, however many retries are left": proxied(
    async ({ store, proxy }) => {
      proxy.isSilent = true;

      const error = await failure(store.create({ name: "Fern" }), PlantStoreUnreachable);

      assert.match(error.message, /in [12] tries: no response within \d+ ms$/);
    },
    // Two tries and the pauses after them take at least 350 ms.
    { deadlineMs: 300, timeoutMs: 100, retries: 1_000 },
  ),

  "gives up at its deadline if connections are refused, however many retries are left": proxied(
    async ({ store, proxy }) => {
      proxy.close();

      await failure(store.create({ name: "Fern" }), PlantStoreUnreachable);
    },
    { deadlineMs: 300, timeoutMs: 100, retries: 1_000 },
  ),

  "takes a timeout and retries for one call": proxied(async ({ store, proxy }) => {
    proxy.isSilent = true;

    const error = await failure(store.me({ timeoutMs: 50, retries: 1 }), PlantStoreUnreachable);

    assert.match(error.message, /in 2 tries: no response within 50 ms$/);
  }),

  "takes a deadline and retries for each of its calls": proxied(async ({ store, proxy }) => {
    proxy.isSilent = true;
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
      collect(store.list(options)),
      collect(store.pages(options)),
      collect(store.tags(options)),
      store.eventPage(options),
      collect(store.events(options)),
      collect(store.events({ after: 0, ...options })),
    ];

    const errors = await Promise.all(calls.map((call) => failure<Error>(call, Error)));
    for (const { message } of errors) {
      assert.match(message, /in 1 tries: no response within [56]\d ms$/);
    }
  }),
};

/** Aborts the call soon after it began. Returns the error that it fails with. */
async function abortSoon(
  call: (signal: AbortSignal) => Promise<unknown>,
  reason: RangeError,
): Promise<RangeError> {
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 50);
  return failure(call(controller.signal), RangeError);
}

const abortCases: ClientCases = {
  "stops at once when it was aborted before it began": proxied(async ({ store, proxy }) => {
    const reason = new RangeError("enough");

    const call = store.create({ name: "Fern" }, { signal: AbortSignal.abort(reason) });

    assert.equal(await failure(call, RangeError), reason);
    assert.equal(proxy.connections, 0);
  }),

  "stops at once when it is aborted while it waits for a response": proxied(
    async ({ store, proxy }) => {
      const reason = new RangeError("enough");
      proxy.breakNext("silent");

      const error = await abortSoon((signal) => store.delete(1, { signal }), reason);

      assert.equal(error, reason);
    },
  ),

  "stops at once when it is aborted between tries": proxied(
    async ({ store, proxy }) => {
      const reason = new RangeError("enough");
      proxy.close();

      const error = await abortSoon((signal) => store.delete(1, { signal }), reason);

      assert.equal(error, reason);
    },
    { retries: 1_000 },
  ),
};

export const troubleCases: ClientCases = {
  ...brokenConnectionCases,
  ...lateResponseCases,
  ...abortCases,
};
