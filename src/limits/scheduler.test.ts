/** What runs at once, what waits and in which order, and what has waited too long. */
import { beforeEach, describe, expect, test } from "bun:test";
import { lateAfterMs } from "./overload.ts";
import { Scheduler } from "./scheduler.ts";

let scheduler: Scheduler;
/** The clock, which only a test moves. */
let nowMs: number;
beforeEach(() => {
  nowMs = 0;
  scheduler = new Scheduler(() => nowMs);
});

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

describe("a slice may run at once", () => {
  test("until the slices of the tick have taken 10 ms", async () => {
    expect(scheduler.mayRun()).toBe(true);
    nowMs += 10;
    expect(scheduler.mayRun()).toBe(false);
    await nextTick();
    expect(scheduler.mayRun()).toBe(true);
  });

  test("unless another one waits for its turn", () => {
    expect(scheduler.mayRun()).toBe(true);
    void scheduler.turn("ann");
    expect(scheduler.mayRun()).toBe(false);
  });
});

describe("six slices of 6 ms that wait", () => {
  const order: string[] = [];
  let slices: Promise<void>[];

  beforeEach(() => {
    order.length = 0;
    slices = ["hog", "hog", "hog", "hog", "ann", "bob"].map(async (garden) => {
      await scheduler.turn(garden);
      // What a slice does in microtasks counts as its time.
      await null;
      nowMs += 6;
      order.push(garden);
    });
  });

  test("run garden by garden", async () => {
    await Promise.all(slices);
    expect(order).toEqual(["hog", "ann", "bob", "hog", "hog", "hog"]);
  });

  test("run in several ticks, because two of them use up a tick's 10 ms", async () => {
    await nextTick();
    expect(order).toEqual(["hog", "ann"]);
    await Promise.all(slices);
  });
});

describe("a turn", () => {
  /** Slices of one garden of 10 ms each. Resolve to whether their turns came too late. */
  function takeTurns(count: number): Promise<boolean[]> {
    const turns = Array.from({ length: count }, async () => {
      const isLate = await scheduler.turn("ann");
      nowMs += 10;
      return isLate;
    });
    return Promise.all(turns);
  }

  test("is late once it has waited for more than half a second", async () => {
    const areLate = await takeTurns(52);
    // The turns before the last one came after 490 and 500 ms.
    expect(areLate.slice(-3)).toEqual([false, false, true]);
  });

  test("isn't late if the whole process stood still", async () => {
    const turns = takeTurns(4);
    nowMs += lateAfterMs + 1;
    expect(await turns).toEqual([false, false, false, false]);
  });
});
