/**
 * `npm run prove hostile [rounds] [seed]`: 1,000 slow readers of a list of 7.4 MB, then 8,000
 * unfinished bodies, 600 unread results of bulk requests, 5,000 unfinished heads and 5,000 idle
 * connections. All but readers and bulks must be closed in time.
 */
import { startService } from "../../end-to-end/running-service.ts";
import { prove } from "../proof.ts";
import { attack, fillGarden } from "./slow-attack.ts";
import type { SlowKind } from "./slow-clients.ts";

const counts: Readonly<Record<SlowKind, number>> = {
  readers: 1_000,
  bodies: 8_000,
  bulks: 600,
  headers: 5_000,
  idle: 5_000,
};
const grownMbMax = 100;
const healthMsMax = 100;
/** An idle connection is closed after 30 seconds, also one whose request was refused. */
const stayMsMax = 36_000;
const holdMs = stayMsMax + 5_000;
/** As in deploy/Containerfile: the runtime collects harder near the limit. */
const variables = { BUN_JSC_forceRAMSize: String(256 * 1_024 * 1_024) };

await prove({
  name: "hostile",
  trials: "rounds",
  count: 3,
  async run() {
    const faults: string[] = [];
    const lines: string[] = [];
    for (const kind of Object.keys(counts) as SlowKind[]) {
      await using service = await startService({ variables });
      if (kind === "readers") await fillGarden(service);
      const impact = await attack(service, kind, counts[kind], holdMs);
      lines.push(
        `${counts[kind]} slow ${kind}: grown by ${impact.grownMb.toFixed(0)} MB, ` +
          `/healthz ${impact.healthMsMax.toFixed(0)} ms at most, ${impact.calls} calls of others, ` +
          `${impact.faults.length} failed`,
      );
      faults.push(...impact.faults);
      if (impact.grownMb > grownMbMax) faults.push(`slow ${kind} took ${impact.grownMb} MB`);
      if (kind !== "readers" && kind !== "bulks" && impact.longestMs > stayMsMax) {
        faults.push(`slow ${kind} stayed for ${impact.longestMs} ms`);
      }
      if (impact.healthMsMax > healthMsMax) {
        faults.push(`slow ${kind}: /healthz took ${impact.healthMsMax} ms`);
      }
    }
    process.stdout.write(`${lines.join("\n")}\n`);
    return { faults, figures: { rounds: 1 } };
  },
});
