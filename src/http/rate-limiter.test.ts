/** The rate limit: what passes, the allowance, and that threads add up. */
import { expect, spyOn, test } from "bun:test";
import type { Caller } from "../domain/caller.ts";
import { createBucketMemory, RateLimiter } from "./rate-limiter.ts";

const limit = { requests: 5, windowSeconds: 10 };

function callerOf(credential: string): Caller {
  return { credential, user: "alice", garden: "alice", scope: "write" };
}

/** A limiter on a clock that only the test moves. */
function openLimiter(rate = limit) {
  let nowMs = 0;
  const buckets = { ...createBucketMemory(), seed: "the same in every run" };
  const limiter = new RateLimiter(rate, buckets, () => nowMs);
  return {
    limiter,
    wait(ms: number) {
      nowMs += ms;
    },
    /** How many of `count` requests pass. */
    send(credential: string, count: number) {
      const caller = callerOf(credential);
      let passed = 0;
      for (let sent = 0; sent < count; sent++) if (limiter.permits(limiter.take(caller))) passed++;
      return passed;
    },
  };
}

test("a caller may make one more for every share of the window, and not a moment before", () => {
  const { send, wait } = openLimiter();
  expect(send("a", 20)).toBe(5);
  wait(1_999.99);
  expect(send("a", 1)).toBe(0);
  wait(0.01);
  expect(send("a", 2)).toBe(1);
  wait(4_000);
  expect(send("a", 9)).toBe(2);
});

test.each([
  [1, 1],
  [1, 86_400],
  [100_000, 86_400],
])("%i requests in %i s are counted exactly, even after years", (requests, windowSeconds) => {
  const { send, wait } = openLimiter({ requests, windowSeconds });
  wait(3 * 365 * 86_400_000 + 0.1);
  expect(send("a", requests + 100)).toBe(requests);
});

test("more active callers than slots: nobody is refused within their limit", () => {
  const { send } = openLimiter();
  let passed = 0;
  for (let index = 0; index < 100_000; index++) passed += send(`caller ${index}`, 1);
  expect(passed).toBe(100_000);
  expect(send("one more", 9)).toBe(5);
});

test.each([
  [1, 1],
  [7, 60],
  [500, 2],
])("%i requests in %i s: callers may do what the allowance says", (requests, windowSeconds) => {
  const { limiter, wait } = openLimiter({ requests, windowSeconds });
  const alice = callerOf("alice");
  const take = () => {
    const level = limiter.take(alice);
    return { isPermitted: limiter.permits(level), ...limiter.allowance(level) };
  };
  for (const pauseSeconds of [0, 0.3 * windowSeconds, windowSeconds]) {
    wait(pauseSeconds * 1_000);
    for (let left = take().remaining - 1; left >= 0; left--) {
      expect(take()).toMatchObject({ isPermitted: true, remaining: left });
    }
    const refused = take();
    expect(refused).toMatchObject({ isPermitted: false, remaining: 0 });
    // Coming back at the given second is enough, and a second earlier isn't.
    const earlyMs = Math.max(0, (refused.nextSeconds - 1) * 1_000 - 0.01);
    wait(earlyMs);
    expect(take().isPermitted).toBe(false);
    wait(refused.nextSeconds * 1_000 - earlyMs);
    expect(take().isPermitted).toBe(true);
  }
});

test("a request counts even if another thread is faster between its look and its count", () => {
  const buckets = createBucketMemory();
  const other = new RateLimiter(limit, buckets, () => 0);
  let overtakes = 2;
  const limiter = new RateLimiter(limit, buckets, () => {
    if (overtakes-- > 0) other.take(callerOf("a"));
    return 0;
  });
  expect(limiter.allowance(limiter.take(callerOf("a"))).remaining).toBe(2);
  expect(limiter.allowance(other.take(callerOf("a"))).remaining).toBe(1);
});

test("a thread whose clock started later has the same time", () => {
  using _ = spyOn(performance, "now").mockReturnValue(1_000);
  const buckets = createBucketMemory();
  const perSecond = { requests: 100, windowSeconds: 100 };
  const first = new RateLimiter(perSecond, buckets);
  const later = new RateLimiter(perSecond, { ...buckets, originMs: buckets.originMs - 5_000 });
  const send = (limiter: RateLimiter) =>
    Array.from({ length: 100 }, () => limiter.permits(limiter.take(callerOf("a")))).filter(Boolean);
  expect([send(first).length, send(later).length]).toEqual([100, 5]);
});
