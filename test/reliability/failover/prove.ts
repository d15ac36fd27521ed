/** `npm run prove failover [failovers] [seed]`: many failovers in a row. */
import { prove, seconds, spanOf } from "../proof.ts";
import { FailoverTrial, type Loss } from "./failover.ts";

/** Kills are the most frequent. */
const mix: readonly Loss[] = ["killed", "killed", "cut off", "cut off", "frozen", "shut down"];
/** Longer than requests wait for a server, now and then. */
const longOutageMs = 5_000;
const longOutageEvery = 7;

const trial = await FailoverTrial.start();
const waitsMs: number[] = [];
let longestRequestMs = 0;

await prove({
  name: "failover",
  trials: "failovers",
  count: 50,
  async run(seed) {
    const loss = mix[seed % mix.length] as Loss;
    const outageMs = seed % longOutageEvery === 0 ? longOutageMs : 0;
    const failover = await trial.run(loss, seed, outageMs);
    waitsMs.push(failover.untilWritesMs);
    longestRequestMs = Math.max(longestRequestMs, failover.longestRequestMs);
    await trial.pair.replaceStandby();
    return { faults: failover.faults, figures: { [loss]: 1 } };
  },
  async conclude() {
    const { present, absent, unknown } = trial.counts;
    await trial.stop();
    return {
      text:
        `${present} plants present, ${absent} absent, ${unknown} unknown; from the promotion to ` +
        `writes on every instance: ${spanOf(waitsMs)}; longest request ${seconds(longestRequestMs)}`,
    };
  },
});
