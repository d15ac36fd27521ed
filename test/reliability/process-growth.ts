/** What a process uses: memory and open files, how fast they grow, and the time of its threads. */
import { readdirSync, readFileSync } from "node:fs";

export interface Sample {
  readonly atMs: number;
  readonly residentMb: number;
  readonly openFiles: number;
}

/** Linux only. */
export function sampleProcess(pid: number): Sample {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return {
    atMs: performance.now(),
    residentMb: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1_024,
    openFiles: readdirSync(`/proc/${pid}/fd`).length,
  };
}

/**
 * How long the busiest thread of a process has computed since this was called. Unlike the time on a
 * clock, it doesn't grow when other processes take the processor. Linux only.
 */
export function watchThreads(pid: number): () => number {
  const before = readThreadTimes(pid);
  return () => {
    const spent = [...readThreadTimes(pid)].map(([id, ms]) => ms - (before.get(id) ?? 0));
    return Math.max(...spent);
  };
}

function readThreadTimes(pid: number): Map<string, number> {
  const folder = `/proc/${pid}/task`;
  const times = new Map<string, number>();
  for (const id of readdirSync(folder)) {
    try {
      const [nanoseconds] = readFileSync(`${folder}/${id}/schedstat`, "utf8").split(" ");
      times.set(id, Number(nanoseconds) / 1e6);
    } catch {
      // The thread has ended since it was listed.
    }
  }
  return times;
}

export interface Growth {
  readonly perHour: number;
  /** Half of the 95 % confidence interval. */
  readonly margin: number;
}

const hourMs = 3_600_000;
const blocksMax = 24;
/** Student's t for 95 % and 22 degrees of freedom. */
const t = 2.07;

/**
 * The slope of the line that fits best. Neighbouring samples are correlated, so the line is fitted
 * to the means of blocks.
 */
export function growthOf(samples: readonly Sample[], sign: "residentMb" | "openFiles"): Growth {
  const size = Math.ceil(samples.length / Math.min(blocksMax, samples.length));
  const points: { x: number; y: number }[] = [];
  for (let start = 0; start < samples.length; start += size) {
    const block = samples.slice(start, start + size);
    points.push({
      x: mean(block.map(({ atMs }) => atMs)) / hourMs,
      y: mean(block.map((sample) => sample[sign])),
    });
  }
  const meanX = mean(points.map(({ x }) => x));
  const meanY = mean(points.map(({ y }) => y));
  const sum = (term: (x: number, y: number) => number) =>
    points.reduce((total, { x, y }) => total + term(x - meanX, y - meanY), 0);
  const varianceX = sum((x) => x * x);
  const perHour = sum((x, y) => x * y) / varianceX;
  const residuals = sum((x, y) => (y - perHour * x) ** 2);
  return { perHour, margin: t * Math.sqrt(residuals / (points.length - 2) / varianceX) };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function renderGrowth({ perHour, margin }: Growth, unit = ""): string {
  return `${perHour.toFixed(2)} ± ${margin.toFixed(2)}${unit} an hour`;
}
