/** What concurrent clients see could have happened one operation after the other. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { joinTrials, type Trial } from "../proof.ts";
import { runHistory, startDeployments, stopAll } from "./trial.ts";

setDefaultTimeout(240_000);

/** Kills come with the seeds 7 and 14, and a loss of the connections with 3. */
const historiesCount = 16;

test("histories are linearizable on both engines, even if instances are killed or cut off", async () => {
  const deployments = await startDeployments();
  const trials: Trial[] = [];
  let miscounted: string[] = [];
  try {
    for (let seed = 1; seed <= historiesCount; seed++) {
      trials.push(await runHistory(deployments, seed));
      expect({ seed, faults: trials.at(-1)?.faults }).toEqual({ seed, faults: [] });
    }
  } finally {
    miscounted = await stopAll(deployments);
  }
  expect(miscounted).toEqual([]);
  // Most outcomes must be known for the check to mean something.
  const { operations = 0, unknown = 0 } = joinTrials(trials).figures;
  expect(unknown).toBeLessThan(operations / 10);
});
