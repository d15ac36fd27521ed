/**
 * The buckets: what fits, how they run out, and that no thread gets more than all may have
 * together.
 */
import { describe, expect, test } from "bun:test";
import type { PouringOrder } from "../../test/pouring-thread.ts";
import { Buckets, makeBucketMemory } from "./buckets.ts";

const limit = { requests: 5, windowSeconds: 10 };

function openBuckets(rate = limit, memory = makeBucketMemory()) {
  let nowMs = 0;
  const buckets = new Buckets(rate, memory, () => nowMs);
  return {
    memory,
    buckets,
    wait(ms: number) {
      nowMs += ms;
    },
    /** How many of so many requests fit. */
    pour(key: number, count: number) {
      return Array.from({ length: count }, () => buckets.pour(key) <= buckets.capacity).filter(
        Boolean,
      ).length;
    },
  };
}

describe("a bucket", () => {
  test("takes as many requests at once as the limit says, and not one more", () => {
    const { pour } = openBuckets();
    expect(pour(1, 20)).toBe(5);
  });

  test("takes one more for every share of the window that has passed, and not a moment before", () => {
    const { pour, wait } = openBuckets();
    pour(1, 5);
    wait(1_999.999);
    expect(pour(1, 1)).toBe(0);
    wait(0.001);
    expect(pour(1, 2)).toBe(1);
    wait(4_000);
    expect(pour(1, 9)).toBe(2);
  });

  test("never saves up more than the limit", () => {
    const { pour, wait } = openBuckets();
    wait(1_000_000);
    expect(pour(1, 20)).toBe(5);
    wait(1_000_000);
    expect(pour(1, 20)).toBe(5);
  });

  test("is not filled by what did not fit", () => {
    const { pour, wait } = openBuckets();
    pour(1, 1_000);
    wait(2_000);
    expect(pour(1, 1_000)).toBe(1);
  });

  test("is of one key only", () => {
    const { pour } = openBuckets();
    for (let key = 0; key < 1_000; key++) expect(pour(key, 9)).toBe(5);
    expect(pour(2 ** 53 - 1, 9)).toBe(5);
  });

  test.each([
    [1, 1],
    [1, 86_400],
    [7, 60],
    [999_983, 1],
    [1_000_000, 86_400],
  ])("of %i requests in %i s is exact, also after years", (requests, windowSeconds) => {
    const { pour, wait } = openBuckets({ requests, windowSeconds });
    wait(3 * 365 * 86_400_000 + 0.1);
    expect(pour(1, requests + 100)).toBe(requests);
  });
});

describe("a full shelf", () => {
  /** Keys that belong on one shelf of eight, by factors that are known. */
  const key = (index: number) => 8_192 * (index + 1);
  const openShelves = () => openBuckets(limit, { ...makeBucketMemory(), factors: [2 ** 19, 0] });

  test("gives the place of a bucket that has run out to another", () => {
    const { pour, wait } = openShelves();
    for (let index = 0; index < 8; index++) pour(key(index), 5 - (index % 2));
    wait(8_000);
    // Those with an odd number have run out.
    for (let index = 8; index < 12; index++) expect(pour(key(index), 9)).toBe(5);
    for (let index = 0; index < 8; index += 2) expect(pour(key(index), 9)).toBe(4);
  });

  test("forgets what is least, and refuses nobody who has not used up their own", () => {
    const { pour } = openShelves();
    for (let index = 0; index < 8; index++) pour(key(index), index === 3 ? 1 : 5);
    expect(pour(key(8), 9)).toBe(5);
    for (const index of [0, 1, 2, 4, 5, 6, 7]) expect(pour(key(index), 1)).toBe(0);
    expect(pour(key(3), 9)).toBe(5);
  });

  test("cannot be aimed at by the choice of keys", () => {
    const { pour } = openBuckets();
    for (let index = 0; index < 8; index++) pour(key(index), 5);
    let fitted = 0;
    for (let turn = 0; turn < 100; turn++) fitted += pour(key(turn % 2 ? 8 : 0), 1);
    expect(fitted).toBe(5);
  });
});

describe("what is told to others", () => {
  test("is what was poured since the last time and is still there, and is told once", () => {
    const { buckets, pour, wait } = openBuckets();
    pour(7, 3);
    pour(8, 1);
    wait(2_000);
    expect(buckets.takePours()).toEqual([{ key: 7, grains: 2 * buckets.requestGrains }]);
    expect(buckets.takePours()).toEqual([]);
    pour(7, 1);
    expect(buckets.takePours()).toEqual([{ key: 7, grains: buckets.requestGrains }]);
  });

  test("comes back with what they have used, which then is missing here", () => {
    const { buckets, pour, wait } = openBuckets();
    pour(7, 1);
    buckets.takePours();
    pour(7, 1);
    buckets.raise(7, 3 * buckets.requestGrains);
    expect(pour(7, 9)).toBe(1);
    // Others may have let through so much that it takes longer than a window.
    buckets.takePours();
    buckets.raise(7, 12 * buckets.requestGrains);
    wait(14_000);
    expect(pour(7, 9)).toBe(0);
    wait(2_000);
    expect(pour(7, 9)).toBe(1);
  });

  test("comes back late, and has run out meanwhile as all else does", () => {
    const { buckets, pour, wait } = openBuckets();
    pour(7, 1);
    buckets.takePours();
    wait(4_000);
    buckets.raise(7, 5 * buckets.requestGrains);
    expect(pour(7, 9)).toBe(2);
  });

  test("is not what was poured into a bucket whose place another has taken", () => {
    const { buckets, pour } = openBuckets(limit, { ...makeBucketMemory(), factors: [2 ** 19, 0] });
    for (let index = 1; index <= 8; index++) pour(8_192 * index, index === 3 ? 1 : 5);
    pour(8_192 * 9, 1);
    // Others have used it, too.
    buckets.raise(8_192 * 9, 3 * buckets.requestGrains);
    const pours = buckets.takePours().filter(({ key }) => key === 8_192 * 9);
    expect(pours).toEqual([{ key: 8_192 * 9, grains: buckets.requestGrains }]);
  });

  test("never gives back what was used here", () => {
    const { buckets, pour } = openBuckets();
    pour(7, 5);
    buckets.takePours();
    buckets.raise(7, 0);
    expect(pour(7, 9)).toBe(0);
  });
});

test.each([864_000_000, -864_000_000])(
  "threads agree on the time though the clock was set by %i ms before one of them began",
  (setMs) => {
    const rate = { requests: 5, windowSeconds: 86_400 };
    const memory = makeBucketMemory();
    const first = new Buckets(rate, memory);
    const later = new Buckets(rate, { ...memory, originMs: memory.originMs - setMs });
    const turns = [later, first, later, first, later, first, later];
    const fitted = turns.filter((buckets) => buckets.pour(7) <= buckets.capacity);
    expect(fitted).toHaveLength(5);
  },
);

test("threads agree on the time though the clock was set back by a moment", () => {
  const rate = { requests: 5, windowSeconds: 8 };
  const memory = makeBucketMemory();
  const first = new Buckets(rate, memory);
  const later = new Buckets(rate, { ...memory, originMs: memory.originMs + 1_900 });
  const turns = [later, later, later, later, later, first];
  const fitted = turns.filter((buckets) => buckets.pour(7) <= buckets.capacity);
  expect(fitted).toHaveLength(5);
});

test("threads get together what the limit says, and not one more, however they hurry", async () => {
  const order: PouringOrder = {
    limit: { requests: 500_000, windowSeconds: 1 },
    memory: makeBucketMemory(),
    gate: new Int32Array(new SharedArrayBuffer(4)),
    threads: 4,
    pours: 200_000,
  };
  const threads = Array.from({ length: order.threads }, () => pourInThread(order));
  const fitted = await Promise.all(threads);
  expect(fitted.reduce((sum, each) => sum + each)).toBe(order.limit.requests);
}, 60_000);

function pourInThread(order: PouringOrder): Promise<number> {
  const thread = new Worker(new URL("../../test/pouring-thread.ts", import.meta.url));
  return new Promise((resolve) => {
    thread.onmessage = ({ data }) => {
      resolve(data);
      thread.terminate();
    };
    thread.postMessage(order);
  });
}
