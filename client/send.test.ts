/** How long the client waits and keeps trying, and its names. The rest is in test/client/. */
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import type { ErrorCode } from "../src/domain/errors.ts";
import type { PlantContent } from "../src/domain/plant.ts";
import { PlantStore, PlantStoreUnreachable } from "./plant-store.ts";
import type { ProblemCode } from "./problem-error.ts";
import type { PlantDraft, PlantField } from "./types.ts";

const timeoutMs = 300_000;
const { setTimeout } = globalThis;
let pausesMs: number[];

/** Pauses are over at once. */
beforeEach(() => {
  pausesMs = [];
  spyOn(globalThis, "setTimeout").mockImplementation(((act: () => void, durationMs: number) => {
    if (durationMs === timeoutMs) return setTimeout(act, durationMs);
    pausesMs.push(durationMs);
    return setTimeout(act, 0);
  }) as typeof setTimeout);
});
afterEach(() => mock.restore());

const open = (fetch: () => Promise<Response>) =>
  new PlantStore({ url: "http://localhost", token: "t", fetch, timeoutMs });

test("it keeps trying for about 20 seconds, so that a restart goes unnoticed", async () => {
  const store = open(() => Promise.reject(new Error("refused")));
  expect(await store.me().catch((error) => error)).toBeInstanceOf(PlantStoreUnreachable);
  expect(pausesMs.reduce((sum, each) => sum + each)).toBeWithin(13_000, 27_000);
  expect(Math.max(...pausesMs)).toBeLessThanOrEqual(5_000);
});

test("it waits as many seconds, or until the date, that it is asked to", async () => {
  // A date has whole seconds, so up to one of the thirty may be lost.
  const asked = ["7", new Date(Date.now() + 30_000).toUTCString()];
  await open(async () => {
    const wait = asked.shift();
    if (wait === undefined) return new Response(null, { status: 204 });
    return new Response(null, { status: 429, headers: { "retry-after": wait } });
  }).delete(1);
  expect(pausesMs).toHaveLength(2);
  expect(pausesMs[0]).toBeWithin(7_000, 7_200);
  expect(pausesMs[1]).toBeWithin(28_000, 30_300);
});

test("a stopped call is repeated until a response comes, however few its retries are", async () => {
  const stop = new AbortController();
  let tries = 0;
  const fetch = async () => {
    stop.abort();
    if (++tries < 5) throw new Error("refused");
    return Response.json([{ status: 201, id: 7, replayed: true }]);
  };
  const store = new PlantStore({
    url: "http://localhost",
    token: "t",
    fetch,
    timeoutMs,
    retries: 0,
  });
  const results = await store.createMany([{ name: "Fern" }], { stop: stop.signal });
  expect(results).toEqual([{ status: 201, id: 7n, replayed: true }]);
});

test("a stopped call that certainly did nothing ends at once", async () => {
  const stop = new AbortController();
  let tries = 0;
  const store = open(async () => {
    if (++tries === 2) stop.abort();
    return new Response(null, { status: 429 });
  });
  const stopped = store.deleteMany([7n], { stop: stop.signal });
  expect(await stopped.catch((error) => error)).toBe(stop.signal.reason);
  expect([tries, pausesMs.length]).toEqual([2, 1]);
});

// The client's package can't import the service's types, so the compiler compares them here.
type IsSame<A, B> = [A, B] extends [B, A] ? true : false;
true satisfies IsSame<PlantField, keyof PlantContent>;
true satisfies IsSame<Exclude<keyof PlantDraft, "id">, keyof PlantContent>;
true satisfies IsSame<Exclude<ProblemCode, "unexpected">, ErrorCode>;
