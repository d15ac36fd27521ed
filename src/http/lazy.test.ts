/** One run for all callers, and another only after a failure. */
import { expect, test } from "bun:test";
import { memoizeAsync } from "./lazy.ts";

test("runs once for all callers, and again after a failure", async () => {
  let runs = 0;
  const make = memoizeAsync(async () => {
    runs++;
    await Bun.sleep(1);
    if (runs === 1) throw new Error("no file is left to open");
    return runs;
  });
  const first = await Promise.allSettled([make(), make()]);
  expect(first.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await Promise.all([make(), make()])).toEqual([2, 2]);
  expect(await make()).toBe(2);
});
