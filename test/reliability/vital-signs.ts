/** What a long run must not use up: memory and open files of a process, and whether they grow. */
import { readdirSync, readFileSync } from "node:fs";

export interface VitalSigns {
  readonly atMs: number;
  readonly residentMb: number;
  /** The part of it that is no file: what the program keeps, and not which of its code was used. */
  readonly anonymousMb: number;
  readonly openFiles: number;
  readonly cpuSeconds: number;
}

/** The unit of /proc/PID/stat, the same on all common Linux systems. */
const ticksPerSecond = 100;

/** Linux only. */
export function takeVitalSigns(pid: number): VitalSigns {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const megabytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1_024;
  return {
    atMs: performance.now(),
    residentMb: megabytes("VmRSS"),
    anonymousMb: megabytes("RssAnon"),
    openFiles: readdirSync(`/proc/${pid}/fd`).length,
    cpuSeconds: readCpuSeconds(pid),
  };
}

/** Fields 14 and 15 of proc(5), counted from behind the name: user and system time. */
function readCpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

export interface Slope {
  readonly perHour: number;
  /** Half of the 95 % interval: a slope within it cannot be told from none. */
  readonly noise: number;
}

export type Growth = "flat" | "GROWS" | "too short to tell";

/** Growth up to `max` an hour does not matter; behind more noise than `noiseMax` it may hide. */
export function judgeGrowth({ perHour, noise }: Slope, max: number, noiseMax: number): Growth {
  if (perHour > Math.max(noise, max)) return "GROWS";
  return noise <= noiseMax ? "flat" : "too short to tell";
}

const hourMs = 3_600_000;

/** The straight line that fits best. Neighbouring samples are alike, so they count in blocks. */
export function slopeOf(samples: readonly { atMs: number; value: number }[], blocks = 24): Slope {
  const points = average(samples, blocks);
  const count = points.length;
  const meanX = points.reduce((sum, { x }) => sum + x, 0) / count;
  const meanY = points.reduce((sum, { y }) => sum + y, 0) / count;
  let spread = 0;
  let together = 0;
  for (const { x, y } of points) {
    spread += (x - meanX) ** 2;
    together += (x - meanX) * (y - meanY);
  }
  const perHour = together / spread;
  let rest = 0;
  for (const { x, y } of points) rest += (y - meanY - perHour * (x - meanX)) ** 2;
  return { perHour, noise: 2.07 * Math.sqrt(rest / (count - 2) / spread) };
}

function average(samples: readonly { atMs: number; value: number }[], blocks: number) {
  const size = Math.ceil(samples.length / Math.min(blocks, samples.length));
  const points: { x: number; y: number }[] = [];
  for (let start = 0; start < samples.length; start += size) {
    const block = samples.slice(start, start + size);
    points.push({
      x: block.reduce((sum, { atMs }) => sum + atMs, 0) / block.length / hourMs,
      y: block.reduce((sum, { value }) => sum + value, 0) / block.length,
    });
  }
  return points;
}
