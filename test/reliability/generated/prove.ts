/** `npm run prove generated [batches] [seed]`: about a million varied requests. */
import { prove } from "../proof.ts";
import { GeneratedTrial } from "./generated-trial.ts";

const trial = await GeneratedTrial.start();

await prove({
  name: "generated",
  trials: "batches of 400 rows",
  count: 500,
  run: (seed) => trial.run(seed, 400),
  async conclude() {
    await trial.stop();
    return undefined;
  },
});
