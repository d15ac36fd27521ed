/** Processes that tell each other, by what they have in common, what they let through. */
import { expect, test } from "bun:test";
import type { BucketLevel } from "../domain/storage.ts";
import { createBucketExchange } from "./bucket-exchange.ts";
import { Buckets, makeBucketMemory } from "./buckets.ts";

/** A request for every hour, so that none runs out within a test. */
const limit = { requests: 24, windowSeconds: 86_400 };
const requestMs = 3_600_000;
const key = 7;

/** What a storage would hold; none of it runs out. */
function makeStorage() {
  const levels = new Map<number, number>();
  const told: BucketLevel[][] = [];
  return {
    told,
    async pour(pours: readonly BucketLevel[]) {
      told.push([...pours]);
      return pours.map(({ key, levelMs }) => {
        levels.set(key, (levels.get(key) ?? 0) + levelMs);
        return { key, levelMs: levels.get(key) ?? 0 };
      });
    },
    async forgetEmpty() {},
  };
}

function startProcess(storage: ReturnType<typeof makeStorage>) {
  const memory = makeBucketMemory();
  const buckets = new Buckets(limit, memory);
  return {
    exchange: createBucketExchange(limit, memory, storage),
    /** How many of so many requests fit. */
    pour: (count: number) =>
      Array.from({ length: count }, () => buckets.pour(key) <= buckets.capacity).filter(Boolean)
        .length,
  };
}

test("two processes let through together what one may", async () => {
  const storage = makeStorage();
  const [first, second] = [startProcess(storage), startProcess(storage)];
  expect([first.pour(10), second.pour(8)]).toEqual([10, 8]);
  await first.exchange();
  await second.exchange();
  expect(second.pour(30)).toBe(24 - 18);
  await second.exchange();
  expect(first.pour(1)).toBe(1);
  await first.exchange();
  expect(first.pour(30)).toBe(0);
});

test("the storage is told how long what was poured takes to run out, and nothing where there is none", async () => {
  const storage = makeStorage();
  const { exchange, pour } = startProcess(storage);
  await exchange();
  pour(3);
  await exchange();
  await exchange();
  expect(storage.told).toHaveLength(1);
  expect(storage.told[0]).toMatchObject([{ key }]);
  const levelMs = storage.told[0]?.[0]?.levelMs ?? 0;
  // But for what has run out since.
  expect(levelMs).toBeWithin(2.9 * requestMs, 3 * requestMs + 1);
});
