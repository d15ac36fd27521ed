/** Deadlines: late is late, in order, and what was forgotten is left alone. */
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { Deadlines } from "./deadlines.ts";

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test("calls each once its time has passed, and not before", () => {
  const deadlines = new Deadlines(15_000);
  const late: string[] = [];
  deadlines.watch(() => late.push("first"));
  jest.advanceTimersByTime(5_000);
  deadlines.watch(() => late.push("second"));
  jest.advanceTimersByTime(9_000);
  expect(late).toEqual([]);
  jest.advanceTimersByTime(2_000);
  expect(late).toEqual(["first"]);
  jest.advanceTimersByTime(5_000);
  expect(late).toEqual(["first", "second"]);
});

test("leaves alone what was forgotten", () => {
  const deadlines = new Deadlines(1_000);
  let isLate = false;
  const watched = deadlines.watch(() => {
    isLate = true;
  });
  deadlines.forget(watched);
  jest.advanceTimersByTime(10_000);
  expect(isLate).toBe(false);
});

test("keeps no timer while there is nothing to watch", () => {
  const deadlines = new Deadlines(1_000);
  deadlines.watch(() => {});
  expect(jest.getTimerCount()).toBe(1);
  jest.advanceTimersByTime(3_000);
  expect(jest.getTimerCount()).toBe(0);
});
