/**
 * `npm run prove:hostile -- [rounds] [seed]`: 1,000 slow readers of a list of 7.4 MB, then 8,000
 * unfinished bodies, 5,000 unfinished heads and 5,000 idle connections. All but readers must be
 * closed in time. Where the kernel lets us, the service runs under a memory limit of 256 MiB.
 */
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { startService } from "../../end-to-end/running-service.ts";
import { prove } from "../proof.ts";
import { attack, fillGarden } from "./slow-attack.ts";
import type { SlowKind } from "./slow-clients.ts";

const counts: Readonly<Record<SlowKind, number>> = {
  readers: 1_000,
  bodies: 8_000,
  headers: 5_000,
  idle: 5_000,
};
const grownMbMax = 100;
const healthMsMax = 100;
/** An idle connection is closed after 30 seconds, also one whose request was refused. */
const stayMsMax = 36_000;
const holdMs = stayMsMax + 5_000;
const limitBytes = 256 * 1_024 * 1_024;

/** A control group with the limit; absent where there are none, or others manage them. */
function limitMemory(pid: number): (() => void) | undefined {
  const folder = `/sys/fs/cgroup/memory/plantstore-${pid}`;
  try {
    mkdirSync(folder);
    writeFileSync(`${folder}/memory.limit_in_bytes`, String(limitBytes));
    writeFileSync(`${folder}/cgroup.procs`, String(pid));
    return () => rmdirSync(folder);
  } catch {
    return undefined;
  }
}

await prove({
  name: "hostile",
  trials: "rounds",
  count: 3,
  async run() {
    const faults: string[] = [];
    const lines: string[] = [];
    for (const kind of Object.keys(counts) as SlowKind[]) {
      // As deploy/Containerfile sets it: the runtime collects harder near the limit.
      const variables = { BUN_JSC_forceRAMSize: String(limitBytes) };
      await using service = await startService({ variables });
      const release = limitMemory(service.pid);
      if (kind === "readers") await fillGarden(service);
      const impact = await attack(service, kind, counts[kind], holdMs);
      lines.push(
        `${counts[kind]} slow ${kind}: grown by ${impact.grownMb.toFixed(0)} MB, ` +
          `/healthz ${impact.healthMsMax.toFixed(0)} ms at most, ${impact.calls} calls of others, ` +
          `${impact.faults.length} failed${release ? ", under a limit of 256 MiB" : ""}`,
      );
      faults.push(...impact.faults);
      if (impact.grownMb > grownMbMax) faults.push(`slow ${kind} took ${impact.grownMb} MB`);
      if (kind !== "readers" && impact.longestMs > stayMsMax) {
        faults.push(`slow ${kind} stayed for ${impact.longestMs} ms`);
      }
      if (impact.healthMsMax > healthMsMax) {
        faults.push(`slow ${kind}: /healthz took ${impact.healthMsMax} ms`);
      }
      await service[Symbol.asyncDispose]();
      await Bun.sleep(100);
      release?.();
    }
    process.stdout.write(`${lines.join("\n")}\n`);
    return { faults, figures: { rounds: 1 } };
  },
});
