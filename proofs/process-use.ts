/** What a process uses: memory and processor time. Linux only. */
import { readdirSync, readFileSync } from "node:fs";

export function residentMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1_024;
}

/** How long all threads of a process have computed so far. */
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
