/**
 * `npm run prove soak [minutes] [requests a second]`: hours at half load. Fails unless memory
 * and open files grow by less than the bounds below. Two hours are enough to tell.
 */
import { growthPerHour } from "../process-growth.ts";
import { readNumbers } from "../proof.ts";
import { soak } from "./soak.ts";

/** An hour. */
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
const memory = growthPerHour(settled, "residentMb");
const files = growthPerHour(settled, "openFiles");
const heap = result.heapBytesPerResponse;
const faults = [...result.faults];
if (memory > residentMbMax) faults.push("resident memory grows");
if (files > openFilesMax) faults.push("open files grow");
if (heap > heapBytesPerResponseMax) faults.push("the heap grows");
for (const fault of faults) say(`fault: ${fault}`);
say(
  `${result.responses.toLocaleString("en")} responses at ${result.rate} a second, ` +
    `${faults.length} faults; after the first quarter, resident memory grew by ` +
    `${memory.toFixed(2)} MB an hour (bound: ${residentMbMax}), open files by ` +
    `${files.toFixed(2)} (bound: ${openFilesMax}), and the heap after collection by ` +
    `${heap.toFixed(3)} bytes per response (bound: ${heapBytesPerResponseMax})`,
);
process.exit(faults.length > 0 ? 1 : 0);
