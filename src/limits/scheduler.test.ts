/** Who runs at once, who waits and in which order, and who has waited too long. */
import { beforeEach, expect, test } from "bun:test";
import { lateAfterMs } from "./overload.ts";
import { Scheduler } from "./scheduler.ts";

let scheduler: Scheduler;
/** The clock that only a test moves. */
let nowMs: number;
beforeEach(() => {
  nowMs = 0;
  scheduler = new Scheduler(() => nowMs);
});

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

/** Slices of one garden, each as long as a tick, and whether their turns came too late. */
function takeTurns(count: number): Promise<boolean>[] {
  return Array.from({ length: count }, async () => {
    const isLate = await scheduler.turn("ann");
    nowMs += 10;
    return isLate;
  });
}

test("slices run at once while the tick has time and nobody waits", async () => {
  expect(scheduler.mayRun()).toBe(true);
  nowMs += 10;
  expect(scheduler.mayRun()).toBe(false);
  await nextTick();
  expect(scheduler.mayRun()).toBe(true);
  void scheduler.turn("ann");
  expect(scheduler.mayRun()).toBe(false);
});

test("gardens take turns, and what a slice does in microtasks counts as its time", async () => {
  const order: string[] = [];
  const slices = ["hog", "hog", "hog", "hog", "ann", "bob"].map(async (garden) => {
    await scheduler.turn(garden);
    await null;
    nowMs += 6;
    order.push(garden);
  });
  await nextTick();
  // Two slices of 6 ms use up a tick.
  expect(order).toEqual(["hog", "ann"]);
  await Promise.all(slices);
  expect(order).toEqual(["hog", "ann", "bob", "hog", "hog", "hog"]);
});

test("a turn says whether it came too late for a request, unless the process stood still", async () => {
  const areLate = await Promise.all(takeTurns(52));
  expect(areLate.slice(-3)).toEqual([false, false, true]);
  const turns = takeTurns(4);
  nowMs += lateAfterMs + 1;
  expect(await Promise.all(turns)).toEqual([false, false, false, false]);
});
