/**
 * What a caller is told is what happens: so many more requests pass, and the next one when it was
 * said to.
 */
import { expect, test } from "bun:test";
import { makeDice } from "../../test/dice.ts";
import type { Caller } from "../domain/caller.ts";
import { makeBucketMemory } from "./buckets.ts";
import { RateLimiter } from "./rate-limiter.ts";

const caller = (credential: string): Caller => ({
  credential,
  user: "alice",
  garden: "alice",
  scope: "write",
});

test.each([
  [1, 1],
  [1, 86_400],
  [3, 10],
  [7, 60],
  [100, 60],
  [5_000, 2],
])("of %i requests in %i s", (requests, windowSeconds) => {
  const pick = makeDice(requests * windowSeconds);
  let nowMs = 0;
  const limiter = new RateLimiter({ requests, windowSeconds }, makeBucketMemory(), () => nowMs);
  const alice = caller("alice");
  for (let turn = 0; turn < 50; turn++) {
    let level = limiter.take(alice);
    for (let left = limiter.allowance(level).remaining; left > 0; left--) {
      expect(limiter.permits(level)).toBe(true);
      level = limiter.take(alice);
      expect(limiter.allowance(level).remaining).toBe(left - 1);
    }
    level = limiter.take(alice);
    expect(limiter.permits(level)).toBe(false);
    const { remaining, nextSeconds } = limiter.allowance(level);
    expect(remaining).toBe(0);
    expect(nextSeconds).toBeWithin(1, Math.ceil(windowSeconds / requests) + 1);
    // To come when it was said is enough, and to come a second earlier is not.
    const refusedAtMs = nowMs;
    nowMs += Math.max(0, (nextSeconds - 1) * 1_000 - 0.001);
    expect(limiter.permits(limiter.take(alice))).toBe(false);
    nowMs = refusedAtMs + nextSeconds * 1_000;
    expect(limiter.permits(limiter.take(alice))).toBe(true);
    nowMs += pick(windowSeconds * 1_000);
  }
});

test("counts by the credential, and not by who remembers it", () => {
  const limiter = new RateLimiter({ requests: 2, windowSeconds: 60 }, makeBucketMemory(), () => 0);
  const take = (credential: string) => limiter.permits(limiter.take(caller(credential)));
  expect([take("a"), take("a"), take("a"), take("b")]).toEqual([true, true, false, true]);
});

test("nothing is left, and not less, where other processes let through more than there was", () => {
  const limit = { requests: 5, windowSeconds: 10 };
  const limiter = new RateLimiter(limit, makeBucketMemory(), () => 0);
  const requestLevel = limiter.take(caller("a"));
  expect(limiter.allowance(requestLevel * 9)).toEqual({ remaining: 0, nextSeconds: 8 });
});
