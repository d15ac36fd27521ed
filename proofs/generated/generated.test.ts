/** The rows of the contract, with random changes. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { makePlace } from "../audited-store.ts";
import { joinTrials } from "../proof.ts";
import { GeneratedTrial } from "./generated-trial.ts";

setDefaultTimeout(180_000);

test.each([
  ["sqlite", 12],
  ["postgres", 6],
] as const)("rows with changes get documented responses, on %s", async (engine, count) => {
  await using place = await makePlace(engine);
  const trial = await GeneratedTrial.start({ database: place.database });
  const trials = await Promise.all([1, 2, 3, 4].map((seed) => trial.run(seed, count)));
  await trial.stop();
  expect(joinTrials(trials).faults).toEqual([]);
});
