/** `npm run prove generated [batches] [seed]`: about a million varied requests. */
import { growthOf, renderGrowth, type Sample, sampleProcess } from "../process-growth.ts";
import { prove } from "../proof.ts";
import { GeneratedTrial } from "./generated-trial.ts";

const batchSize = 400;
/** Caches fill and code is compiled in this part of the run. */
const warmUpShare = 0.25;
/** At full load, while the store grows. */
const growthMaxMbPerHour = 20;

const trial = await GeneratedTrial.start();
const samples: Sample[] = [];

await prove({
  name: "generated",
  trials: "batches of 400 rows",
  count: 500,
  async run(seed) {
    const result = await trial.run(seed, batchSize);
    samples.push(sampleProcess(trial.service.pid));
    return result;
  },
  async conclude() {
    await trial.stop();
    const settled = samples.slice(Math.floor(samples.length * warmUpShare));
    const memory = growthOf(settled, "residentMb");
    const sizes = settled.map(({ residentMb }) => residentMb);
    return {
      // Only if it grows for sure: a few batches are too short to tell.
      isFault: memory.perHour - memory.margin > growthMaxMbPerHour,
      text:
        `resident memory ${Math.min(...sizes).toFixed(1)} to ${Math.max(...sizes).toFixed(1)} MB ` +
        `after the first quarter, ${renderGrowth(memory, " MB")}; ${settled.at(-1)?.openFiles} open files at the end`,
    };
  },
});
