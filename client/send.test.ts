/** How long the client waits and keeps trying, and its names. The rest is in test/client/. */
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import type { ErrorCode } from "../src/domain/errors.ts";
import type { PlantContent } from "../src/domain/plant.ts";
import { PlantStore, type PlantStoreOptions, PlantStoreUnreachable } from "./plant-store.ts";
import type { ProblemCode } from "./problem-error.ts";
import type { PlantDraft, PlantField } from "./types.ts";

/** No pause takes this long, so a timer of this duration is a request's timeout. */
const timeoutMs = 300_000;
const { setTimeout } = globalThis;
/** The pauses that the client chose. All are over at once. */
let pausesMs: number[];

beforeEach(() => {
  pausesMs = [];
  const shorten = (act: () => void, durationMs: number) => {
    if (durationMs === timeoutMs) return setTimeout(act, durationMs);
    pausesMs.push(durationMs);
    return setTimeout(act, 0);
  };
  spyOn(globalThis, "setTimeout").mockImplementation(shorten as typeof setTimeout);
});
afterEach(() => mock.restore());

/** A client whose requests go to this function. */
function openStore(fetch: () => Promise<Response>, options: Partial<PlantStoreOptions> = {}) {
  return new PlantStore({ url: "http://localhost", token: "t", fetch, timeoutMs, ...options });
}

/** Responds once with a 429 and this `Retry-After`, and then with a 204. */
function limitOnce(retryAfter: string): () => Promise<Response> {
  const responses = [
    new Response(null, { status: 429, headers: { "retry-after": retryAfter } }),
    new Response(null, { status: 204 }),
  ];
  return async () => responses.shift() ?? new Response(null, { status: 500 });
}

test("the client keeps trying for about 20 seconds, so that a restart goes unnoticed", async () => {
  const store = openStore(() => Promise.reject(new Error("refused")));

  const error = await store.me().catch((reason) => reason);

  expect(error).toBeInstanceOf(PlantStoreUnreachable);
  const sumMs = pausesMs.reduce((sum, pauseMs) => sum + pauseMs);
  expect(sumMs).toBeWithin(13_000, 27_000);
});

test("no pause between two tries is longer than 5 seconds", async () => {
  const store = openStore(() => Promise.reject(new Error("refused")));

  await store.me().catch(() => {});

  expect(Math.max(...pausesMs)).toBeLessThanOrEqual(5_000);
});

test("a deadline starts over after a 429 if the client may wait for the rate limit without end", async () => {
  const store = openStore(limitOnce("500"), {
    deadlineMs: 400_000,
    retryAfterMsMax: 600_000,
    limitedRetries: Number.POSITIVE_INFINITY,
  });

  await store.delete(1);

  expect(Math.max(...pausesMs)).toBeGreaterThan(500_000);
});

test("the client waits as many seconds as it is asked to", async () => {
  await openStore(limitOnce("7")).delete(1);

  expect(pausesMs).toHaveLength(1);
  expect(pausesMs[0]).toBeWithin(7_000, 7_200);
});

test("the client waits until the date that it is asked to wait for", async () => {
  const inThirtySeconds = new Date(Date.now() + 30_000).toUTCString();

  await openStore(limitOnce(inThirtySeconds)).delete(1);

  expect(pausesMs).toHaveLength(1);
  // A date has whole seconds, so up to one of the thirty may be lost.
  expect(pausesMs[0]).toBeWithin(28_000, 30_300);
});

test("a stopped call is repeated until a response comes, however few its retries are", async () => {
  const stop = new AbortController();
  let triesCount = 0;
  const fetch = async () => {
    stop.abort();
    triesCount++;
    if (triesCount < 5) throw new Error("refused");
    return Response.json([{ status: 201, id: 7, replayed: true }]);
  };
  const store = openStore(fetch, { retries: 0 });

  const results = await store.createMany([{ name: "Fern" }], { stop: stop.signal });

  expect(results).toEqual([{ status: 201, id: 7n, replayed: true }]);
});

test("a stopped call that certainly did nothing ends at once", async () => {
  const stop = new AbortController();
  let triesCount = 0;
  const fetch = async () => {
    triesCount++;
    if (triesCount === 2) stop.abort();
    return new Response(null, { status: 429 });
  };

  const error = await openStore(fetch)
    .deleteMany([7n], { stop: stop.signal })
    .catch((reason) => reason);

  expect(error).toBe(stop.signal.reason);
  expect(triesCount).toBe(2);
  // Only the one after the first try.
  expect(pausesMs).toHaveLength(1);
});

// The client's package can't import the service's types, so the compiler compares them here.
type IsSame<One, Other> = [One, Other] extends [Other, One] ? true : false;
true satisfies IsSame<PlantField, keyof PlantContent>;
true satisfies IsSame<Exclude<keyof PlantDraft, "id">, keyof PlantContent>;
true satisfies IsSame<Exclude<ProblemCode, "unexpected">, ErrorCode>;
