/** What a process uses: memory and processor time. Linux only. */
import { readFileSync } from "node:fs";

/** Now, or at most so far. */
export function residentMb(pid: number, field: "VmRSS" | "VmHWM" = "VmRSS"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1_024;
}

/** How long all threads of a process have computed so far, which Linux counts in 10 ms. */
export function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name stands in parentheses; user and system time are the 12th and 13th field after it.
  const [user, system] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12);
  return 10 * (Number(user) + Number(system));
}
