/** How long the client waits and keeps trying, and its codes. The rest is in test/client/. */
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import type { ErrorCode } from "../src/domain/errors.ts";
import { PlantStore, PlantStoreUnreachable } from "./plant-store.ts";
import type { ProblemCode } from "./problem-error.ts";

const timeoutMs = 300_000;
const { setTimeout } = globalThis;
let pausesMs: number[];
let nowMs: number;

/** Pauses are over at once, and the clock moves on by them. */
beforeEach(() => {
  pausesMs = [];
  nowMs = 0;
  spyOn(performance, "now").mockImplementation(() => nowMs);
  spyOn(globalThis, "setTimeout").mockImplementation(((act: () => void, durationMs: number) => {
    const isPause = durationMs < timeoutMs;
    if (isPause) pausesMs.push(durationMs);
    return setTimeout(
      () => {
        if (isPause) nowMs += durationMs;
        act();
      },
      isPause ? 0 : durationMs,
    );
  }) as typeof setTimeout);
});
afterEach(() => mock.restore());

const open = (fetch: () => Promise<Response>) =>
  new PlantStore({ url: "http://localhost", token: "t", fetch, timeoutMs });
const limited = (retryAfter: string) =>
  new Response(null, { status: 429, headers: { "retry-after": retryAfter } });

test("it keeps trying for about 20 seconds, so that a restart goes unnoticed", async () => {
  const store = open(() => Promise.reject(new Error("refused")));
  const failure = await store.me().catch((error) => error);
  expect(failure).toBeInstanceOf(PlantStoreUnreachable);
  const totalMs = pausesMs.reduce((sum, each) => sum + each);
  expect(totalMs).toBeWithin(13_000, 27_000);
  expect(Math.max(...pausesMs)).toBeLessThanOrEqual(5_000);
});

test("it waits as many seconds, or until the date, that it is asked to", async () => {
  // A date has whole seconds, so up to one of the thirty may be lost.
  const date = new Date(Date.now() + 30_000).toUTCString();
  const responses = [limited("7"), limited(date), new Response(null, { status: 204 })];
  await open(async () => responses.shift() as Response).delete(1);
  const [first = 0, second = 0, ...others] = pausesMs;
  expect(others).toEqual([]);
  expect(first).toBeWithin(7_000, 7_200);
  expect(second).toBeWithin(28_000, 30_300);
});

test("calls share one wait after a 429, and then go one at a time", async () => {
  let isOpen = false;
  let [running, mostRunning] = [0, 0];
  const statuses: number[] = [];
  const store = open(async () => {
    mostRunning = Math.max(mostRunning, ++running);
    await new Promise(setImmediate);
    running--;
    statuses.push(isOpen ? 204 : 429);
    return isOpen ? new Response(null, { status: 204 }) : limited("1");
  });
  const calls = Array.from({ length: 16 }, (_, id) => store.delete(id));
  while (statuses.length < 16) await new Promise(setImmediate);
  // All were sent together, and from now on one is.
  expect(mostRunning).toBe(16);
  mostRunning = 0;
  isOpen = true;
  const abort = new AbortController();
  const stopped = store.delete(16, { signal: abort.signal }).catch((error) => error.message);
  abort.abort(new RangeError("enough"));
  expect(await stopped).toBe("enough");
  await Promise.all([...calls, store.delete(17)]);
  expect(mostRunning).toBe(1);
  expect(statuses.filter((status) => status === 204)).toHaveLength(17);
  // For ten seconds more.
  for (const [laterMs, atOnce] of [
    [9_000, 1],
    [1_001, 4],
  ] as const) {
    nowMs += laterMs;
    mostRunning = 0;
    await Promise.all(Array.from({ length: 4 }, (_, id) => store.delete(id)));
    expect(mostRunning).toBe(atOnce);
  }
});

// The client's package can't import the service's types, so the compiler compares them here.
test("it names every code of the service, and no other", () => {
  const ofClient: Exclude<ProblemCode, "unexpected"> = "conflict" as ErrorCode;
  const ofService: ErrorCode = "conflict" as Exclude<ProblemCode, "unexpected">;
  expect(ofClient).toBe(ofService);
});
