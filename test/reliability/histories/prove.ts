/** `npm run prove histories [count] [seed]`: that many histories, half of them on each engine. */
import { prove } from "../proof.ts";
import { Deployments } from "./trial.ts";

const deployments = await Deployments.start();

await prove({
  name: "histories",
  trials: "histories",
  count: 2_000,
  // Each in its own gardens, so that commits contain writes to several.
  atOnce: 16,
  run: (seed) => deployments.run(seed),
  async conclude() {
    const faults = await deployments.stop();
    return faults.length > 0 ? { text: faults.join("\n"), isFault: true } : undefined;
  },
});
