/** What a process uses: memory, open files, how fast they grow, and processor time. */
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

/** How long all threads of a process have computed so far. Linux only. */
export function processorMs(pid: number): number {
  const folder = `/proc/${pid}/task`;
  let sum = 0;
  for (const id of readdirSync(folder)) {
    try {
      const [nanoseconds] = readFileSync(`${folder}/${id}/schedstat`, "utf8").split(" ");
      sum += Number(nanoseconds) / 1e6;
    } catch {
      // The thread has ended since it was listed.
    }
  }
  return sum;
}

/** 0 where the system does not tell. */
export function residentMb(pid: number): number {
  return process.platform === "linux" ? sampleProcess(pid).residentMb : 0;
}

/** By how much a value grew in an hour: from the first half of the samples to the second. */
export function growthPerHour(
  samples: readonly Sample[],
  sign: "residentMb" | "openFiles",
): number {
  const middle = samples.length >> 1;
  const [early, late] = [samples.slice(0, middle), samples.slice(middle)];
  const mean = (part: readonly Sample[], of: keyof Sample) =>
    part.reduce((sum, sample) => sum + sample[of], 0) / part.length;
  const hours = (mean(late, "atMs") - mean(early, "atMs")) / 3_600_000;
  return (mean(late, sign) - mean(early, sign)) / hours;
}
