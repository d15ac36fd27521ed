/** `npm run prove generated [batches] [seed]`: about a million varied requests. */
import { prove } from "../proof.ts";
import { GeneratedTrial } from "./generated-trial.ts";

const trial = await GeneratedTrial.start();

await prove({
  name: "generated",
  trials: "batches of 100 rows",
  count: 2_000,
  atOnce: 4,
  run: (seed) => trial.run(seed, 100),
  async conclude() {
    await trial.stop();
    return undefined;
  },
});
