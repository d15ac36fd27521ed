/** How long a stop waits, and what stops it from waiting. */
import { afterEach, describe, expect, mock, spyOn, test } from "bun:test";
import { Stop } from "./stop.ts";

afterEach(() => mock.restore());

test("a stop waits 15 seconds for what is under way", () => {
  const timer = spyOn(globalThis, "setTimeout").mockImplementation((() => 0) as never);
  const stop = new Stop();

  stop.ask();

  expect(stop.asked.aborted).toBe(true);
  expect(stop.over.aborted).toBe(false);
  const [[end, waitMs] = []] = timer.mock.calls;
  expect(waitMs).toBe(15_000);
  (end as () => void)();
  expect(stop.over.aborted).toBe(true);
});

describe("a stop that is pressed", () => {
  /** Presses the stop when the clock shows this time. */
  function pressAt(stop: Stop, timeMs: number): void {
    spyOn(performance, "now").mockReturnValue(timeMs);
    stop.press();
  }

  test("once is asked for, and not over", () => {
    const stop = new Stop();

    pressAt(stop, 5_000);

    expect(stop.asked.aborted).toBe(true);
    expect(stop.over.aborted).toBe(false);
  });

  test("again within a second, as npm and double clicks do, is not over", () => {
    const stop = new Stop();

    pressAt(stop, 5_000);
    pressAt(stop, 5_999);

    expect(stop.asked.aborted).toBe(true);
    expect(stop.over.aborted).toBe(false);
  });

  test("again a second later is over", () => {
    const stop = new Stop();

    pressAt(stop, 5_000);
    pressAt(stop, 5_999);
    pressAt(stop, 6_000);

    expect(stop.over.aborted).toBe(true);
  });
});
