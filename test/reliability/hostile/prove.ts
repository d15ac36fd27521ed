/**
 * `npm run prove hostile [rounds] [seed]`: 1,000 slow readers of a list of 7.4 MB, then 8,000
 * unfinished bodies, 600 unread results of bulk requests, 5,000 unfinished heads and 5,000 idle
 * connections. All but readers and bulks must be closed in time.
 */
import { startService } from "../../end-to-end/running-service.ts";
import { prove } from "../proof.ts";
import { attack, type SlowKind } from "./slow-clients.ts";

const counts: [kind: SlowKind, count: number][] = [
  ["readers", 1_000],
  ["bodies", 8_000],
  ["bulks", 600],
  ["headers", 5_000],
  ["idle", 5_000],
];
const grownMbMax = 100;
const busyMsMax = 100;
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
    for (const [kind, count] of counts) {
      await using service = await startService({ variables });
      const { grownMb, longestMs, ...used } = await attack(service, kind, count, holdMs);
      const mayStay = kind === "readers" || kind === "bulks";
      process.stdout.write(
        `${count} slow ${kind}: grown by ${grownMb.toFixed(0)} MB, busy for ` +
          `${used.busyMsMax.toFixed(0)} ms at most, open for ${longestMs.toFixed(0)} ms at most\n`,
      );
      faults.push(...used.faults);
      if (grownMb > grownMbMax) faults.push(`slow ${kind} took too much memory`);
      if (used.busyMsMax > busyMsMax) faults.push(`slow ${kind} kept a thread busy`);
      if (longestMs > stayMsMax && !mayStay) faults.push(`slow ${kind} stayed too long`);
    }
    return { faults, figures: {} };
  },
});
