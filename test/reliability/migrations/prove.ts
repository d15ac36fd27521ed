/** `npm run prove migrations [rounds]`: ten instances start at once on an empty database. */
import { prove } from "../proof.ts";
import { instancesCount, startAtOnce } from "./simultaneous-start.ts";

await prove({
  name: "migrations",
  trials: "rounds",
  count: 20,
  run: async () => ({ faults: await startAtOnce(), figures: { instances: instancesCount } }),
});
