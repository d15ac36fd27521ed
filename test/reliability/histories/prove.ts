/** `npm run prove histories [count] [seed]`: that many histories on each engine. */
import { joinTrials, prove } from "../proof.ts";
import { Suite } from "./trial.ts";

const suites = [await Suite.start("sqlite"), await Suite.start("postgres")];

await prove({
  name: "histories",
  trials: "histories on each engine",
  count: 1_000,
  // Each in its own gardens, so that commits contain writes to several.
  atOnce: 8,
  async conclude() {
    const faults = (await Promise.all(suites.map((suite) => suite.stop()))).flat();
    return faults.length > 0 ? { text: faults.join("\n"), isFault: true } : undefined;
  },
  run: async (seed) => joinTrials(await Promise.all(suites.map((suite) => suite.run(seed)))),
});
