/** The processes and files of a run, what they use, and their end. Linux only: it reads /proc. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Everything that a run stores. */
export const workspace = mkdtempSync(join(tmpdir(), "plantstore-bench-"));
const running = new Set<Bun.Subprocess>();

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => process.exit(130));
}
// PostgreSQL ends by itself with the process that started it.
process.on("exit", () => {
  for (const subprocess of running) subprocess.kill("SIGKILL");
  rmSync(workspace, { recursive: true, force: true });
});

export interface Command {
  readonly words: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts a server. Its standard error goes to a file, for the case that it fails. */
export function startProcess({ words, environment }: Command, errorPath: string): Bun.Subprocess {
  const subprocess = Bun.spawn([...words], {
    env: { ...process.env, ...environment },
    stdin: "ignore",
    stdout: "ignore",
    stderr: Bun.file(errorPath),
  });
  running.add(subprocess);
  void subprocess.exited.then(() => running.delete(subprocess));
  return subprocess;
}

/** Returns the standard output of a command that succeeds. */
export async function run({ words, environment }: Command): Promise<string> {
  const subprocess = Bun.spawn([...words], {
    env: { ...process.env, ...environment },
    stdin: "ignore",
    stderr: "pipe",
  });
  running.add(subprocess);
  const [output, errors, exitCode] = await Promise.all([
    subprocess.stdout.text(),
    subprocess.stderr.text(),
    subprocess.exited,
  ]);
  running.delete(subprocess);
  if (exitCode !== 0) throw new Error(`${words.slice(0, 3).join(" ")} failed: ${errors}`);
  return output;
}

const readyDeadlineMs = 60_000;

/** Returns the milliseconds until a 200. */
export async function waitUntilReady(subprocess: Bun.Subprocess, port: number): Promise<number> {
  const startedAtMs = performance.now();
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { keepalive: false }).catch(
      () => undefined,
    );
    await response?.arrayBuffer();
    const elapsedMs = performance.now() - startedAtMs;
    if (response?.status === 200) return elapsedMs;
    if (
      subprocess.exitCode !== null ||
      subprocess.signalCode !== null ||
      elapsedMs > readyDeadlineMs
    ) {
      throw new Error(`There is no response at port ${port}.`);
    }
    await Bun.sleep(1);
  }
}

/** The resident memory of a process: now (VmRSS) or at its peak (VmHWM). */
export function readMegabytes(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1024;
}

/** The unit of /proc/stat, the same on all common Linux systems. */
const ticksPerSecond = 100;

/** The fields of /proc/PID/stat from the state on. See proc(5): before them are the id and the name. */
function readStat(pid: number | string): number[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name may contain blanks.
  return stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
}

/** The processor time that a process has taken, with all its threads. */
export function readCpuSeconds(pid: number): number {
  const [user = 0, system = 0] = readStat(pid).slice(11, 13);
  return (user + system) / ticksPerSecond;
}

/**
 * The processor time that others have taken: that of the machine, including what its host took,
 * without this process and all it has started.
 */
export function readOthersCpuSeconds(): number {
  const processes = new Map<number, { parent: number; ticks: number }>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const fields = readStat(entry);
      // User and system time, of the process and of its children that have ended.
      const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15);
      const ticks = user + system + childUser + childSystem;
      processes.set(Number(entry), { parent: fields[1] ?? 0, ticks });
    } catch {
      // It has ended since it was listed.
    }
  }
  const isOwn = (pid: number): boolean =>
    pid === process.pid || (pid > 1 && isOwn(processes.get(pid)?.parent ?? 0));
  const own = [...processes].reduce((sum, [pid, { ticks }]) => sum + (isOwn(pid) ? ticks : 0), 0);
  const total = readFileSync("/proc/stat", "utf8").split("\n")[0]?.trim().split(/\s+/).map(Number);
  const [, user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0, stolen = 0] =
    total ?? [];
  return (user + nice + system + interrupts + softInterrupts + stolen - own) / ticksPerSecond;
}
