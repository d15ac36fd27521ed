/** `npm run prove:histories -- [count] [seed]`: that many histories on each engine. */
import { joinTrials, prove } from "../proof.ts";
import { Suite } from "./trial.ts";

const suites = [await Suite.start("sqlite"), await Suite.start("postgres")];
process.on("exit", () => {
  for (const suite of suites) suite.abandon();
});

await prove({
  name: "histories",
  trials: "histories on each engine",
  count: 1_000,
  // Each in its own gardens, so that commits contain writes to several.
  atOnce: 8,
  run: async (seed) => joinTrials(await Promise.all(suites.map((suite) => suite.run(seed)))),
});
