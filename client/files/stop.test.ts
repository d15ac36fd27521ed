/** How long a stop waits, and what stops it from waiting. */
import { afterEach, expect, mock, spyOn, test } from "bun:test";
import { Stop } from "./stop.ts";

afterEach(() => mock.restore());

test("a stop waits 15 seconds for what is under way", () => {
  const timer = spyOn(globalThis, "setTimeout").mockImplementation((() => 0) as never);
  const stop = new Stop();
  stop.ask();
  expect([stop.asked.aborted, stop.over.aborted]).toEqual([true, false]);
  const [[end, waitMs] = []] = timer.mock.calls;
  expect(waitMs).toBe(15_000);
  (end as () => void)();
  expect(stop.over.aborted).toBe(true);
});

test("asking again ends it, unless that comes within a second: npm and double clicks do that", () => {
  const clock = spyOn(performance, "now");
  const stop = new Stop();
  const pressAt = (timeMs: number) => {
    clock.mockReturnValue(timeMs);
    stop.press();
    return [stop.asked.aborted, stop.over.aborted];
  };
  expect(pressAt(5_000)).toEqual([true, false]);
  expect(pressAt(5_999)).toEqual([true, false]);
  expect(pressAt(6_000)).toEqual([true, true]);
});
