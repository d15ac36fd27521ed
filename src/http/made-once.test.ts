/** Made for the first who asks, and again only after a failure. */
import { expect, test } from "bun:test";
import { once } from "./made-once.ts";

test("what was made is there for all who ask, and after a failure it is made again", async () => {
  let makings = 0;
  const make = once(async () => {
    makings++;
    await Bun.sleep(1);
    if (makings === 1) throw new Error("no file is left to open");
    return makings;
  });
  const first = await Promise.allSettled([make(), make()]);
  expect(first.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await Promise.all([make(), make()])).toEqual([2, 2]);
  expect(await make()).toBe(2);
});
