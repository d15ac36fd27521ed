/** Calls that fail at the worst moments cost no promise. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { isInterposable } from "../interposed-io/interposed-io.ts";
import { strike } from "./fault-trial.ts";
import { Strokes } from "./strokes.ts";

setDefaultTimeout(60_000);

/** In each scene one; of the failures, and of how long they last, several. */
const sampled = [24 * 40, 24 * 60 + 4, 24 * 30 + 11, 24 * 30 + 13];

test.skipIf(!isInterposable)("calls here and there fail, and cost no promise", async () => {
  const strokes = new Strokes();
  const trials = await Promise.all(
    sampled.map(async (number) => strike(await strokes.find(number))),
  );
  expect(trials.flatMap(({ faults }) => faults)).toEqual([]);
  expect(trials.map(({ figures }) => figures["calls that failed"])).not.toContain(0);
});
