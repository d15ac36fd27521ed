/** Reads what a process and its children use, from /proc. */
import { readdirSync, readFileSync } from "node:fs";

export interface Usage {
  readonly cpuSeconds: number;
  readonly residentMegabytes: number;
}

/** The unit of /proc/PID/stat, the same on all common Linux systems. */
const ticksPerSecond = 100;
const kilobytesPerMegabyte = 1024;

export function readUsage(pid: number): Usage {
  let ticks = 0;
  let kilobytes = 0;
  for (const member of [pid, ...descendantsOf(pid)]) {
    const fields = readStat(member);
    // Fields 14 and 15 of proc(5), counted from behind the name: user and system time.
    ticks += Number(fields?.[11] ?? 0) + Number(fields?.[12] ?? 0);
    kilobytes += Number(/^VmRSS:\s+(\d+)/m.exec(readProc(member, "status") ?? "")?.[1] ?? 0);
  }
  return {
    cpuSeconds: ticks / ticksPerSecond,
    residentMegabytes: kilobytes / kilobytesPerMegabyte,
  };
}

/** What all processes have used so far, including time that the host took from this machine. */
export function readMachineCpuSeconds(): number {
  const fields = readFileSync("/proc/stat", "utf8").split("\n")[0]?.trim().split(/\s+/).slice(1);
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0, stolen = 0] =
    fields?.map(Number) ?? [];
  return (user + nice + system + interrupts + softInterrupts + stolen) / ticksPerSecond;
}

/** Watches the resident memory. The function it returns stops that and returns the peak. */
export function watchResidentMemory(pid: number, everyMs = 200): () => number {
  let highest = readUsage(pid).residentMegabytes;
  const look = () => {
    highest = Math.max(highest, readUsage(pid).residentMegabytes);
  };
  const timer = setInterval(look, everyMs);
  return () => {
    clearInterval(timer);
    look();
    return highest;
  };
}

/** Files and connections that the process itself has open. */
export function countOpenFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function descendantsOf(pid: number): number[] {
  const parents = new Map<number, number>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const parent = Number(readStat(Number(entry))?.[1] ?? 0);
    if (parent > 0) parents.set(Number(entry), parent);
  }
  const family = new Set([pid]);
  for (let size = 0; size !== family.size; ) {
    size = family.size;
    for (const [child, parent] of parents) if (family.has(parent)) family.add(child);
  }
  family.delete(pid);
  return [...family];
}

/** The fields behind the name, which may itself hold blanks: state, parent, and so on. */
function readStat(pid: number): string[] | undefined {
  const text = readProc(pid, "stat");
  return text?.slice(text.lastIndexOf(")") + 2).split(" ");
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    // The process may have ended since it was listed.
    return undefined;
  }
}
