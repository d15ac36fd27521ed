/** `npm run prove histories [count] [seed]`: that many histories, half of them on each engine. */
import { prove } from "../proof.ts";
import { runHistory, startDeployments, stopAll } from "./trial.ts";

const deployments = await startDeployments();

await prove({
  trials: "histories",
  count: 2_000,
  // Each in its own gardens, so that commits contain writes to several.
  atOnce: 16,
  run: (seed) => runHistory(deployments, seed),
  conclude: () => stopAll(deployments),
});
