/** The judge of times: what differs is found, and what does not is not. */
import { expect, test } from "bun:test";
import { makeDice } from "../../dice.ts";
import { deviationMax, judge } from "./timing.ts";

const dice = makeDice(1);
/** Times as a machine that is busy with other things gives them: some are very long. */
const times = (moreUs: number) =>
  Array.from({ length: 5_000 }, () => 200 + dice(60) + moreUs + (dice(10) === 0 ? dice(5_000) : 0));

test("the same times are not told apart, and 9 µs more or less are", () => {
  const comparisons = judge(
    new Map([
      ["first", times(0)],
      ["same", times(0)],
      ["longer", times(9)],
      ["shorter", times(-9)],
    ]),
  );
  const deviations = Object.fromEntries(comparisons.map((each) => [each.kind, each.deviation]));
  expect(deviations.first).toBe(0);
  expect(Math.abs(deviations.same ?? 0)).toBeLessThan(deviationMax);
  expect(deviations.longer).toBeGreaterThan(deviationMax);
  expect(deviations.shorter).toBeLessThan(-deviationMax);
});
