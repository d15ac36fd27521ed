/** Makings that are shared: by whom, and when the next one begins. */
import { expect, test } from "bun:test";
import { shareNext } from "./shared-rendering.ts";

function countMakings() {
  const seen = { begun: 0, atOnce: 0, atOnceMost: 0 };
  const make = async () => {
    seen.atOnce++;
    seen.atOnceMost = Math.max(seen.atOnceMost, seen.atOnce);
    const number = ++seen.begun;
    await Bun.sleep(2);
    seen.atOnce--;
    if (number === 3) throw new Error("it failed");
    return number;
  };
  return { seen, ask: shareNext(make) };
}

test("those who ask in the same turn share what is made at its end", async () => {
  const { ask } = countMakings();
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([1, 1, 1]);
  expect(await ask()).toBe(2);
});

test("who asks while it is made shares the next one, which begins when it is done", async () => {
  const { seen, ask } = countMakings();
  const first = ask();
  while (seen.begun === 0) await Bun.sleep(0);
  const later = [ask(), ask()];
  expect(await first).toBe(1);
  expect(await Promise.all(later)).toEqual([2, 2]);
  expect(seen.atOnceMost).toBe(1);
});

test("a failure reaches those who shared it, and nobody else", async () => {
  const { ask } = countMakings();
  await ask();
  await ask();
  const failed = await Promise.allSettled([ask(), ask()]);
  expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await ask()).toBe(4);
});
