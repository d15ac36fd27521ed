/** What the benchmark ran on. */
import { cpus, loadavg, release, totalmem } from "node:os";
import { runToEnd } from "../process/children.ts";
import type { Workspace } from "../process/workspace.ts";

export interface Machine {
  readonly processor: string;
  readonly architecture: string;
  readonly cores: number;
  readonly memoryGigabytes: number;
  readonly kernel: string;
  readonly wrk: string;
  /** Of the minute before the run; well above 0 means that others were at work too. */
  readonly loadBefore: number;
  readonly isDataInMemory: boolean;
}

export async function describeMachine(workspace: Workspace): Promise<Machine> {
  const loadBefore = loadavg()[0] ?? 0;
  const wrk = await runToEnd({ command: ["wrk", "--version"] });
  return {
    processor: await readProcessor(),
    architecture: process.arch,
    cores: cpus().length,
    memoryGigabytes: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    wrk: /wrk (\S+)/.exec(wrk.standardOutput + wrk.standardError)?.[1] ?? "unknown",
    loadBefore,
    isDataInMemory: workspace.isInMemory,
  };
}

/** The runtime knows no model on some processors where lscpu does. */
async function readProcessor(): Promise<string> {
  const model = cpus()[0]?.model ?? "unknown";
  if (model !== "unknown" || Bun.which("lscpu") === null) return model;
  const output = await runToEnd({ command: ["lscpu"] });
  return /^Model name:\s+(.+)$/m.exec(output.standardOutput)?.[1] ?? model;
}
