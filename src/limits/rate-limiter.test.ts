/** The rate limit: how many requests pass, the allowance, and that threads count together. */
import { beforeEach, describe, expect, test } from "bun:test";
import { createBucketMemory, RateLimiter } from "./rate-limiter.ts";

/** One more request every two seconds. */
const limit = { requests: 5, windowSeconds: 10 };

/** The clock, which only a test moves. */
let nowMs: number;
beforeEach(() => {
  nowMs = 0;
});

const openLimiter = (rate = limit) =>
  new RateLimiter(rate, { ...createBucketMemory(), seed: "the same in every run" }, () => nowMs);

const callerOf = (credential: string) =>
  ({ credential, user: "alice", garden: "alice", scope: "write" }) as const;
const alice = callerOf("alice");

/** Sends this many requests, and returns how many pass. */
function send(limiter: RateLimiter, count: number, caller = alice): number {
  let passed = 0;
  for (let sent = 0; sent < count; sent++) {
    if (limiter.permits(limiter.take(caller))) passed++;
  }
  return passed;
}

test("a caller can send as many requests at once as the limit says", () => {
  expect(send(openLimiter(), 20)).toBe(5);
});

test("a caller gets one more request with every share of the window, not earlier", () => {
  const limiter = openLimiter();
  send(limiter, 20);
  nowMs += 1_999.99;
  expect(send(limiter, 1)).toBe(0);
  nowMs += 0.01;
  expect(send(limiter, 2)).toBe(1);
  nowMs += 4_000;
  expect(send(limiter, 9)).toBe(2);
});

describe("with more callers than slots,", () => {
  test("no caller is refused below the limit", () => {
    const limiter = openLimiter();
    for (let index = 0; index < 100_000; index++) {
      const passed = send(limiter, 1, callerOf(`caller ${index}`));
      // `expect` would take most of the time.
      if (passed === 0) throw new Error(`Caller ${index} is refused.`);
    }
  });

  test("a new caller still has the whole limit", () => {
    const limiter = openLimiter();
    for (let index = 0; index < 100_000; index++) send(limiter, 1, callerOf(`caller ${index}`));
    expect(send(limiter, 9)).toBe(5);
  });
});

describe.each([
  { requests: 1, windowSeconds: 1 },
  { requests: 1, windowSeconds: 86_400 },
  { requests: 7, windowSeconds: 60 },
  { requests: 500, windowSeconds: 2 },
])("with $requests requests in $windowSeconds s, even after years,", (rate) => {
  let limiter: RateLimiter;

  beforeEach(() => {
    nowMs = 3 * 365 * 86_400_000 + 0.1;
    limiter = openLimiter(rate);
  });

  /** Sends a request. Returns whether it passes, and the allowance after it. */
  function take() {
    const level = limiter.take(alice);
    return { isPermitted: limiter.permits(level), ...limiter.allowance(level) };
  }

  test("the allowance says how many requests remain", () => {
    for (let remaining = rate.requests - 1; remaining >= 0; remaining--) {
      expect(take()).toMatchObject({ isPermitted: true, remaining });
    }
    expect(take()).toMatchObject({ isPermitted: false, remaining: 0 });
  });

  test("a refused caller can send a request after the seconds it was told, not earlier", () => {
    send(limiter, rate.requests);
    const { nextSeconds } = take();
    const earlyMs = Math.max(0, (nextSeconds - 1) * 1_000 - 0.01);
    nowMs += earlyMs;
    expect(take().isPermitted).toBe(false);
    nowMs += nextSeconds * 1_000 - earlyMs;
    expect(take().isPermitted).toBe(true);
  });
});

test("a request counts even if other threads count theirs in the meantime", () => {
  const buckets = createBucketMemory();
  const otherThread = new RateLimiter(limit, buckets, () => 0);
  let otherRequests = 0;
  // The limiter looks at the clock after it has read a bucket and before it writes it.
  const limiter = new RateLimiter(limit, buckets, () => {
    if (otherRequests < 2) {
      otherRequests++;
      otherThread.take(alice);
    }
    return 0;
  });
  // Of 5 requests, 3 are used.
  expect(limiter.allowance(limiter.take(alice)).remaining).toBe(2);
});

test("a thread whose clock started later has the same time", () => {
  const slow = { requests: 3, windowSeconds: 60 * 86_400 };
  const buckets = createBucketMemory();
  expect(send(new RateLimiter(slow, buckets), 9)).toBe(3);
  // As in a process that started 40 days after the first: two more requests are due.
  const later = { ...buckets, originMs: buckets.originMs - 40 * 86_400_000 };
  expect(send(new RateLimiter(slow, later), 9)).toBe(2);
});
