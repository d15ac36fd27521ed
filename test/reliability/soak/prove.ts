/**
 * `npm run prove:soak -- [minutes] [requests a second]`: a long time at half load; do memory
 * and open files grow?
 */
import { readNumbers } from "../proof.ts";
import { judgeGrowth, slopeOf } from "../vital-signs.ts";
import { heldGrowthMaxMb, soak } from "./soak.ts";

const [minutes = 120, rate] = readNumbers();
const sayEveryMs = 60_000;
/** Caches fill and code is compiled in this part of the run. */
const warmUpShare = 0.25;
/** An hour. Slower growth than this would not matter in a month, or in a few days. */
const growthMax = { residentMb: 0.1, anonymousMb: 0.1, openFiles: 1 };
/** Behind more noise than this, a leak that matters could hide. */
const noiseMaxPerHour = 5;

const say = (text: string) => process.stdout.write(`${text}\n`);
const startedAtMs = performance.now();
let saidAtMs = startedAtMs;

say(`${minutes} minutes at ${rate === undefined ? "half load" : `${rate} requests a second`}`);
const result = await soak({
  durationMs: minutes * 60_000,
  rate,
  onSample({ atMs, residentMb, anonymousMb, openFiles }, answers) {
    if (atMs - saidAtMs < sayEveryMs) return;
    saidAtMs = atMs;
    const elapsed = Math.round((atMs - startedAtMs) / 60_000);
    say(
      `${elapsed}/${minutes} min: ${answers.toLocaleString("en")} answers, ` +
        `${residentMb.toFixed(1)} MB, ${anonymousMb.toFixed(1)} MB of them no files, ${openFiles} open files`,
    );
  },
});

const settled = result.samples.slice(Math.floor(result.samples.length * warmUpShare));
const sizes = settled.map(({ residentMb }) => residentMb).toSorted((a, b) => a - b);
const [memory, files] = [judge("residentMb", " MB"), judge("openFiles")];
const anonymous = judge("anonymousMb", " MB");

for (const fault of result.faults) say(`fault: ${fault}`);
say(
  `${minutes} minutes at ${result.rate} requests a second, ${result.answers.toLocaleString("en")} ` +
    `answers, ${result.faults.length} faults; resident memory ${sizes.at(0)?.toFixed(1)} to ` +
    `${sizes.at(-1)?.toFixed(1)} MB after the first quarter, ${memory.text} (without files ${anonymous.text}); ` +
    `open files ${files.text}`,
);
const { before, after, answers } = result.held;
const isHeldFlat = after.heapMb - before.heapMb <= heldGrowthMaxMb;
say(
  `without its garbage the heap held ${before.heapMb.toFixed(1)} MB in ` +
    `${before.objects.toLocaleString("en")} objects, and ${after.heapMb.toFixed(1)} MB in ` +
    `${after.objects.toLocaleString("en")} after ${answers.toLocaleString("en")} answers: ` +
    `${isHeldFlat ? "flat" : "GROWS"}`,
);
process.exit(memory.isFlat && files.isFlat && isHeldFlat && result.faults.length === 0 ? 0 : 1);

function judge(sign: keyof typeof growthMax, unit = ""): { text: string; isFlat: boolean } {
  const slope = slopeOf(settled.map((signs) => ({ atMs: signs.atMs, value: signs[sign] })));
  const growth = judgeGrowth(slope, growthMax[sign], noiseMaxPerHour);
  const rate = `${slope.perHour.toFixed(2)} ± ${slope.noise.toFixed(2)}${unit} an hour`;
  return { text: `${rate}: ${growth}`, isFlat: growth === "flat" };
}
