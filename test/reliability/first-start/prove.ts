/**
 * `npm run prove:migrations [rounds]`: many instances start at once on an empty database, many
 * times.
 */
import { prove } from "../proof.ts";
import { instancesCount, startAtOnce } from "./simultaneous-start.ts";

await prove({
  name: "migrations",
  trials: "rounds",
  count: 20,
  run: async () => ({ faults: await startAtOnce(), figures: { instances: instancesCount } }),
});
