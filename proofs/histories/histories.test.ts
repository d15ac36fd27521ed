/** What concurrent clients see could have happened one operation after the other. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { joinTrials } from "../proof.ts";
import { runHistory, startDeployments, stopAll } from "./trial.ts";

setDefaultTimeout(240_000);

/** Each deployment, both engines with a kill (7 and 14), and a loss of the connections (3). */
const seeds = [1, 2, 3, 4, 7, 14];

test("histories are linearizable on both engines, even if instances are killed or cut off", async () => {
  const deployments = await startDeployments();
  const trials = await Promise.all(seeds.map((seed) => runHistory(deployments, seed)));
  const miscounted = await stopAll(deployments);
  const { faults, figures } = joinTrials(trials);
  expect([...faults, ...miscounted]).toEqual([]);
  // Most outcomes must be known for the check to mean something.
  const { operations = 0, unknown = 0 } = figures;
  expect(unknown).toBeLessThan(operations / 10);
});
