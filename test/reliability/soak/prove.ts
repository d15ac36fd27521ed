/**
 * `npm run prove:soak -- [minutes] [requests a second]`: a long time at half load; does memory
 * grow?
 */
import { readNumbers } from "../proof.ts";
import { soak } from "./soak.ts";
import { type Slope, slopeOf, type VitalSigns } from "./vital-signs.ts";

const [minutes = 120, rate] = readNumbers();
const sayEveryMs = 60_000;
/** Caches fill and code is compiled in this part of the run. */
const warmUpShare = 0.25;
/** Slower growth than this would not matter in a month. */
const growthMaxMbPerHour = 0.1;

const say = (text: string) => process.stdout.write(`${text}\n`);
const startedAtMs = performance.now();
let saidAtMs = startedAtMs;

say(`${minutes} minutes at ${rate === undefined ? "half load" : `${rate} requests a second`}`);
const result = await soak({
  durationMs: minutes * 60_000,
  rate,
  onSample({ atMs, residentMb, openFiles }, answers) {
    if (atMs - saidAtMs < sayEveryMs) return;
    saidAtMs = atMs;
    const elapsed = Math.round((atMs - startedAtMs) / 60_000);
    say(
      `${elapsed}/${minutes} min: ${answers.toLocaleString("en")} answers, ` +
        `${residentMb.toFixed(1)} MB, ${openFiles} open files`,
    );
  },
});

const settled = result.samples.slice(Math.floor(result.samples.length * warmUpShare));
const grow = (of: (signs: VitalSigns) => number): Slope =>
  slopeOf(settled.map((signs) => ({ atMs: signs.atMs, value: of(signs) })));
const memory = grow((signs) => signs.residentMb);
const files = grow((signs) => signs.openFiles);
const sizes = settled.map(({ residentMb }) => residentMb).toSorted((a, b) => a - b);
const show = ({ perHour, noise }: Slope) => `${perHour.toFixed(2)} ± ${noise.toFixed(2)} an hour`;
const isFlat = memory.perHour <= Math.max(memory.noise, growthMaxMbPerHour);

for (const fault of result.faults) say(`fault: ${fault}`);
say(
  `${minutes} minutes at ${result.rate} requests a second, ${result.answers.toLocaleString("en")} ` +
    `answers, ${result.faults.length} faults; resident memory ${sizes.at(0)?.toFixed(1)} to ` +
    `${sizes.at(-1)?.toFixed(1)} MB after the first quarter, ${show(memory)} (MB): ` +
    `${isFlat ? "flat" : "GROWS"}; open files ${show(files)}`,
);
process.exit(isFlat && result.faults.length === 0 ? 0 : 1);
