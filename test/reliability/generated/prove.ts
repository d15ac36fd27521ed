/**
 * `npm run prove:generated -- [batches] [seed]`: a million generated requests; does memory grow?
 */
import { prove } from "../proof.ts";
import { judgeGrowth, slopeOf, takeVitalSigns, type VitalSigns } from "../vital-signs.ts";
import { GeneratedTrial } from "./generated-trial.ts";

const batchSize = 1_000;
/** Caches fill and code is compiled in this part of the run. */
const warmUpShare = 0.25;
/** Of a service at full load for an hour. */
const growthMaxMbPerHour = 20;

const trial = await GeneratedTrial.start();
const samples: VitalSigns[] = [];

await prove({
  name: "generated",
  trials: "batches of 1,000 requests",
  count: 1_000,
  async run(seed) {
    const result = await trial.run(seed, batchSize);
    samples.push(takeVitalSigns(trial.service.pid));
    return result;
  },
  async conclude() {
    await trial.stop();
    const settled = samples.slice(Math.floor(samples.length * warmUpShare));
    const memory = slopeOf(settled.map(({ atMs, residentMb }) => ({ atMs, value: residentMb })));
    const sizes = settled.map(({ residentMb }) => residentMb);
    const growth = judgeGrowth(memory, growthMaxMbPerHour, growthMaxMbPerHour);
    return {
      // A few batches are too short to tell, and are run for what they find.
      isFault: growth === "GROWS",
      text:
        `resident memory ${Math.min(...sizes).toFixed(1)} to ${Math.max(...sizes).toFixed(1)} MB ` +
        `after the first quarter, ${memory.perHour.toFixed(1)} ± ${memory.noise.toFixed(1)} MB an ` +
        `hour: ${growth}; ${settled.at(-1)?.openFiles} open files at the end`,
    };
  },
});
