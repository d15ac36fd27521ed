/** `npm run prove:failover [failovers] [seed]`: many failovers in a row. */
import { prove } from "../proof.ts";
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
    waitsMs.sort((a, b) => a - b);
    const seconds = (durationMs = 0) => `${(durationMs / 1_000).toFixed(1)} s`;
    return {
      isFault: false,
      text:
        `${present} plants present, ${absent} absent, ${unknown} unknown; from the promotion to ` +
        `writes on every instance: median ${seconds(waitsMs[waitsMs.length >> 1])}, longest ` +
        `${seconds(waitsMs.at(-1))}; longest request ${seconds(longestRequestMs)}`,
    };
  },
});
