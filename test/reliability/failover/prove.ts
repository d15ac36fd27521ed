/** `npm run prove:failover [failovers] [seed]`: many failovers in a row. */
import { readNumbers } from "../proof.ts";
import { type Failover, FailoverTrial, type Loss } from "./failover.ts";

const [count = 50, firstSeed = Date.now() % 1_000_000] = readNumbers();

/** A server that is killed is what is feared most. */
const mix: readonly Loss[] = ["killed", "killed", "cut off", "cut off", "frozen", "shut down"];
/** Longer than requests wait for a server, now and then. */
const longOutageMs = 5_000;
const longOutageEvery = 7;

const say = (text: string) => process.stdout.write(`${text}\n`);
const seconds = (durationMs: number) => `${(durationMs / 1_000).toFixed(1)} s`;

say(`${count} failovers, seeds from ${firstSeed}`);
const trial = await FailoverTrial.start();
const failovers: Failover[] = [];
try {
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    const loss = mix[seed % mix.length] as Loss;
    const outageMs = seed % longOutageEvery === 0 ? longOutageMs : 0;
    const failover = await trial.run(loss, seed, outageMs).catch((cause) => {
      throw new Error(`seed ${seed}, ${loss}: not finished`, { cause });
    });
    failovers.push(failover);
    const { present, absent, unknown } = failover.counts;
    say(
      `${failovers.length}/${count} seed ${seed}, ${loss}: writes after ${seconds(failover.untilWritesMs)}, ` +
        `longest request ${seconds(failover.longestRequestMs)}; so far ${present} present, ${absent} absent, ` +
        `${unknown} unknown, ${failover.faults.length} faults`,
    );
    // The ledger keeps its faults, so what follows would only repeat them.
    if (failover.faults.length > 0) break;
    await trial.pair.replaceStandby();
  }
} finally {
  await trial.stop();
}

const faults = failovers.at(-1)?.faults ?? [];
for (const fault of faults) say(`fault: ${fault}`);
const countOf = (prefix: string) => faults.filter((fault) => fault.startsWith(prefix)).length;
const waitsMs = failovers.map(({ untilWritesMs }) => untilWritesMs).toSorted((a, b) => a - b);
say(
  `${failovers.length} failovers: ${countOf("lost")} lost, ${countOf("back again")} back again, ` +
    `${countOf("duplicated")} duplicated, ${faults.length} faults in all; from the promotion to ` +
    `writes on every instance: median ${seconds(waitsMs[waitsMs.length >> 1] ?? 0)}, ` +
    `longest ${seconds(waitsMs.at(-1) ?? 0)}; ` +
    `longest request ${seconds(Math.max(...failovers.map((each) => each.longestRequestMs)))}`,
);
process.exit(faults.length > 0 ? 1 : 0);
