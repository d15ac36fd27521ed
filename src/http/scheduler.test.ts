/** Who runs at once, who waits and in which order, and who has waited too long. */
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import { queuedMsMax } from "../async/fair-queue.ts";
import { Scheduler } from "./scheduler.ts";

/** On a clock that only the test moves. */
let nowMs = 0;
beforeEach(() => {
  nowMs = 0;
  spyOn(performance, "now").mockImplementation(() => nowMs);
});
afterEach(() => mock.restore());

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

/** Slices of one garden, each as long as a tick, and whether their turns came too late. */
function takeTurns(scheduler: Scheduler, count: number): Promise<boolean>[] {
  return Array.from({ length: count }, async () => {
    const isLate = await scheduler.turn("ann");
    nowMs += 10;
    return isLate;
  });
}

test("slices run at once while the tick has time and nobody waits", async () => {
  const scheduler = new Scheduler();
  expect(scheduler.mayRun()).toBe(true);
  nowMs += 9;
  expect(scheduler.mayRun()).toBe(true);
  nowMs += 1;
  expect(scheduler.mayRun()).toBe(false);
  await nextTick();
  expect(scheduler.mayRun()).toBe(true);
  const waiting = scheduler.turn("ann");
  expect(scheduler.mayRun()).toBe(false);
  expect(await waiting).toBe(false);
});

test("gardens take turns, and what a slice does in microtasks counts as its time", async () => {
  const scheduler = new Scheduler();
  const order: string[] = [];
  const ticks: number[] = [];
  let tick = 0;
  const slices = ["hog", "hog", "hog", "hog", "ann", "bob"].map(async (garden) => {
    await scheduler.turn(garden);
    await null;
    nowMs += 6;
    order.push(garden);
    ticks.push(tick);
  });
  for (; order.length < 6; tick++) await nextTick();
  await Promise.all(slices);
  expect(order).toEqual(["hog", "ann", "bob", "hog", "hog", "hog"]);
  // Two slices of 6 ms use up a tick.
  expect(ticks).toEqual([0, 0, 1, 1, 2, 2]);
});

test("a turn says whether it came too late for a request", async () => {
  const areLate = await Promise.all(takeTurns(new Scheduler(), 52));
  expect(areLate.slice(-3)).toEqual([false, false, true]);
});

test("nobody waited too long because the process stood still", async () => {
  const turns = takeTurns(new Scheduler(), 4);
  nowMs += queuedMsMax + 1;
  expect(await Promise.all(turns)).toEqual([false, false, false, false]);
});
