/** The rate limit: what passes, the allowance, and that threads add up. */
import { beforeEach, expect, test } from "bun:test";
import { createBucketMemory, RateLimiter } from "./rate-limiter.ts";

const limit = { requests: 5, windowSeconds: 10 };

/** The clock that only a test moves. */
let nowMs: number;
beforeEach(() => {
  nowMs = 0;
});

const openLimiter = (rate = limit) =>
  new RateLimiter(rate, { ...createBucketMemory(), seed: "the same in every run" }, () => nowMs);

const callerOf = (credential: string) =>
  ({ credential, user: "alice", garden: "alice", scope: "write" }) as const;
const alice = callerOf("alice");

/** How many of `count` requests pass. */
function send(limiter: RateLimiter, count: number, caller = alice): number {
  const taken = Array.from({ length: count }, () => limiter.permits(limiter.take(caller)));
  return taken.filter(Boolean).length;
}

test("a caller may make one more for every share of the window, and not a moment before", () => {
  const limiter = openLimiter();
  expect(send(limiter, 20)).toBe(5);
  nowMs += 1_999.99;
  expect(send(limiter, 1)).toBe(0);
  nowMs += 0.01;
  expect(send(limiter, 2)).toBe(1);
  nowMs += 4_000;
  expect(send(limiter, 9)).toBe(2);
});

test("more active callers than slots: nobody is refused within their limit", () => {
  const limiter = openLimiter();
  for (let index = 0; index < 100_000; index++) {
    if (send(limiter, 1, callerOf(`caller ${index}`)) === 0) throw new Error(`${index} is refused`);
  }
  expect(send(limiter, 9)).toBe(5);
});

test.each([
  [1, 1],
  [1, 86_400],
  [7, 60],
  [500, 2],
])(
  "%i requests in %i s: callers may do what the allowance says, even after years",
  (requests, windowSeconds) => {
    const limiter = openLimiter({ requests, windowSeconds });
    const take = () => {
      const level = limiter.take(alice);
      return { isPermitted: limiter.permits(level), ...limiter.allowance(level) };
    };
    nowMs = 3 * 365 * 86_400_000 + 0.1;
    for (let left = requests - 1; left >= 0; left--) {
      expect(take()).toMatchObject({ isPermitted: true, remaining: left });
    }
    const { isPermitted, remaining, nextSeconds } = take();
    expect([isPermitted, remaining]).toEqual([false, 0]);
    // Coming back at the given second is enough, and a second earlier isn't.
    const earlyMs = Math.max(0, (nextSeconds - 1) * 1_000 - 0.01);
    nowMs += earlyMs;
    expect(take().isPermitted).toBe(false);
    nowMs += nextSeconds * 1_000 - earlyMs;
    expect(take().isPermitted).toBe(true);
  },
);

test("a request counts even if another thread is faster between its look and its count", () => {
  const buckets = createBucketMemory();
  const other = new RateLimiter(limit, buckets, () => 0);
  let overtakes = 2;
  const limiter = new RateLimiter(limit, buckets, () => {
    if (overtakes-- > 0) other.take(alice);
    return 0;
  });
  expect(limiter.allowance(limiter.take(alice)).remaining).toBe(2);
});

test("a thread whose clock started later has the same time", () => {
  const buckets = createBucketMemory();
  // Its process started 40 days after the first one.
  const later = { ...buckets, originMs: buckets.originMs - 40 * 86_400_000 };
  const slow = { requests: 3, windowSeconds: 60 * 86_400 };
  const sent = [buckets, later].map((each) => send(new RateLimiter(slow, each), 9));
  expect(sent).toEqual([3, 2]);
});
