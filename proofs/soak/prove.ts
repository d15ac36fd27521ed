/**
 * `npm run prove soak [minutes]`: hours at half load. Fails unless memory and open files grow by
 * less than the bounds below. Two hours are enough to tell.
 */
import { growthPerHour } from "../process-growth.ts";
import { readNumbers } from "../proof.ts";
import { soak } from "./soak.ts";

const [minutes = 120] = readNumbers();
process.stdout.write(`${minutes} minutes at half load\n`);
const run = await soak({ durationMs: minutes * 60_000, warmUpMs: 60_000 });
/** Caches fill and code is compiled in the first quarter. */
const settled = run.samples.slice(run.samples.length >> 2);
/** With little to do, the service holds less memory, so only seconds with the usual load count. */
const usual = settled.map(({ responses }) => responses).toSorted((a, b) => a - b);
const busyMin = 0.75 * (usual[usual.length >> 1] ?? 0);
const busy = settled.filter(({ responses }) => responses >= busyMin);
process.stdout.write(`${busy.length} of ${settled.length} seconds had the usual load\n`);
const growths: [what: string, growth: number, max: number][] = [
  ["MB of resident memory an hour", growthPerHour(busy, "residentMb"), 2],
  ["open files an hour", growthPerHour(busy, "openFiles"), 2],
  ["bytes of the heap per response", run.heapBytesPerResponse, 0.1],
];
for (const [what, growth, max] of growths) {
  process.stdout.write(`${growth.toFixed(3)} more ${what} (bound: ${max})\n`);
}
for (const fault of run.faults) process.stdout.write(`fault: ${fault}\n`);
process.stdout.write(`${run.responses} responses\n`);
process.exit(run.faults.length > 0 || growths.some(([, growth, max]) => growth > max) ? 1 : 0);
