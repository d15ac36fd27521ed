/** Who runs at once, who waits and in which order, and who has waited too long. */
import { expect, test } from "bun:test";
import { queuedMsMax } from "../async/fair-queue.ts";
import { Scheduler } from "./scheduler.ts";

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

function busyWait(durationMs: number): void {
  for (const endMs = performance.now() + durationMs; performance.now() < endMs; );
}

/** Slices of one garden, each as long as a tick, and whether their turns came too late. */
function takeTurns(scheduler: Scheduler, count: number): Promise<boolean>[] {
  return Array.from({ length: count }, async () => {
    const isLate = await scheduler.turn("ann");
    busyWait(10);
    return isLate;
  });
}

test("slices run at once while the tick has time and nobody waits", async () => {
  const scheduler = new Scheduler();
  expect(scheduler.mayRun()).toBe(true);
  busyWait(11);
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
    busyWait(6);
    order.push(garden);
    ticks.push(tick);
  });
  for (; order.length < 6; tick++) await nextTick();
  await Promise.all(slices);
  expect(order).toEqual(["hog", "ann", "bob", "hog", "hog", "hog"]);
  // Two slices of 6 ms use up a tick, so there were at least three.
  expect(Math.max(...ticks) - Math.min(...ticks)).toBeGreaterThanOrEqual(2);
});

test("a turn says whether it came too late for a request", async () => {
  const scheduler = new Scheduler();
  const turns = takeTurns(scheduler, 100);
  const areLate = await Promise.all(turns);
  expect([areLate[0], areLate.at(-1)]).toEqual([false, true]);
});

test("nobody waited too long because the process stood still", async () => {
  const scheduler = new Scheduler();
  const turns = takeTurns(scheduler, 4);
  busyWait(queuedMsMax + 1);
  expect(await Promise.all(turns)).toEqual([false, false, false, false]);
});
