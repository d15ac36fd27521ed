/** Starts, freezes and stops the processes of a run, and kills those that are left at its end. */
import { openSync } from "node:fs";

export interface ChildWish {
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly directory?: string;
  /** Where its standard error goes; absent: nowhere. */
  readonly logPath?: string;
}

export interface Child {
  readonly pid: number;
  readonly hasExited: () => boolean;
  readonly exited: Promise<number>;
  /** Freezes the process, so that it takes nothing from the one that is being measured. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

const running = new Set<Bun.Subprocess>();
const stopGraceMs = 5_000;

/** Thousands of connections need as many open files as the system permits. */
const withAllFiles = 'ulimit -Sn "$(ulimit -Hn)" 2>/dev/null; exec "$0" "$@"';

export function startChild(wish: ChildWish): Child {
  const standardError = wish.logPath === undefined ? "ignore" : openSync(wish.logPath, "a");
  const subprocess = Bun.spawn(["sh", "-c", withAllFiles, ...wish.command], {
    cwd: wish.directory ?? process.cwd(),
    env: { ...process.env, ...wish.environment },
    stdin: "ignore",
    stdout: "ignore",
    stderr: standardError,
  });
  running.add(subprocess);
  void subprocess.exited.then(() => running.delete(subprocess));
  const hasExited = () => subprocess.exitCode !== null || subprocess.signalCode !== null;
  return {
    pid: subprocess.pid,
    hasExited,
    exited: subprocess.exited,
    pause: () => subprocess.kill("SIGSTOP"),
    resume: () => subprocess.kill("SIGCONT"),
    async stop() {
      subprocess.kill("SIGCONT");
      subprocess.kill("SIGTERM");
      const force = setTimeout(() => subprocess.kill("SIGKILL"), stopGraceMs);
      await subprocess.exited;
      clearTimeout(force);
    },
  };
}

export interface Output {
  readonly exitCode: number;
  readonly standardOutput: string;
  readonly standardError: string;
  readonly cpuSeconds: number;
}

/** Runs a command to its end and hands back what it said. */
export async function runToEnd(wish: Omit<ChildWish, "logPath">): Promise<Output> {
  const subprocess = Bun.spawn([...wish.command], {
    cwd: wish.directory ?? process.cwd(),
    env: { ...process.env, ...wish.environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  running.add(subprocess);
  const [standardOutput, standardError, exitCode] = await Promise.all([
    new Response(subprocess.stdout).text(),
    new Response(subprocess.stderr).text(),
    subprocess.exited,
  ]);
  running.delete(subprocess);
  // Microseconds, as a bigint.
  const cpuSeconds = Number(subprocess.resourceUsage()?.cpuTime.total ?? 0) / 1e6;
  return { exitCode, standardOutput, standardError, cpuSeconds };
}

/** All data is temporary, so nothing has to end cleanly. */
export function killAllChildren(): void {
  for (const subprocess of running) subprocess.kill("SIGKILL");
}
