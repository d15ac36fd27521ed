/**
 * `npm run prove soak [minutes] [requests a second]`: hours at half load. Fails unless memory
 * and open files grow by less than the bounds below. Two hours are enough to tell; in shorter runs
 * the confidence interval alone may exceed a bound.
 */
import { growthOf, renderGrowth } from "../process-growth.ts";
import { readNumbers } from "../proof.ts";
import { soak } from "./soak.ts";

/** An hour, with 95 % confidence. */
const residentMbMax = 2;
const openFilesMax = 2;
const heapBytesPerResponseMax = 0.1;

const [minutes = 120, rate] = readNumbers();
/** Caches fill and code is compiled in this part of the run. */
const warmUpShare = 0.25;
const sayEveryMs = 60_000;

const say = (text: string) => process.stdout.write(`${text}\n`);
const startedAtMs = performance.now();
let saidAtMs = startedAtMs;

say(`${minutes} minutes at ${rate === undefined ? "half load" : `${rate} requests a second`}`);
const result = await soak({
  durationMs: minutes * 60_000,
  warmUpMs: 60_000,
  sampleEveryMs: 10_000,
  rate,
  onSample({ atMs, residentMb, openFiles }, responses) {
    if (atMs - saidAtMs < sayEveryMs) return;
    saidAtMs = atMs;
    const elapsed = Math.round((atMs - startedAtMs) / 60_000);
    const count = responses.toLocaleString("en");
    say(`${elapsed} min: ${count} responses, ${residentMb.toFixed(1)} MB, ${openFiles} open files`);
  },
});

const settled = result.samples.slice(Math.floor(result.samples.length * warmUpShare));
const memory = growthOf(settled, "residentMb");
const files = growthOf(settled, "openFiles");
const sizes = settled.map(({ residentMb }) => residentMb);
const faults = [...result.faults];
if (memory.perHour + memory.margin > residentMbMax) {
  faults.push(`resident memory may grow by more than ${residentMbMax} MB an hour`);
}
if (files.perHour + files.margin > openFilesMax) faults.push("open files may grow");
if (result.heapBytesPerResponse > heapBytesPerResponseMax) {
  faults.push(`the heap grew by more than ${heapBytesPerResponseMax} bytes per response`);
}
for (const fault of faults) say(`fault: ${fault}`);
say(
  `${minutes} minutes at ${result.rate} requests a second, ` +
    `${result.responses.toLocaleString("en")} responses, ${faults.length} faults; resident memory ` +
    `${Math.min(...sizes).toFixed(1)} to ${Math.max(...sizes).toFixed(1)} MB after the first ` +
    `quarter, ${renderGrowth(memory, " MB")} (bound: ${residentMbMax}); open files ` +
    `${renderGrowth(files)}; heap after collection ` +
    `${result.heapBytesPerResponse.toFixed(3)} bytes per response (bound: ${heapBytesPerResponseMax})`,
);
process.exit(faults.length > 0 ? 1 : 0);
