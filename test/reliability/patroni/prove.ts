/** `npm run prove patroni [failures] [seed]`: the leader of a Patroni cluster fails, many times. */
import { makeDice, spread } from "../../dice.ts";
import { LoadedInstances } from "../loaded-instances.ts";
import { exitOnSignals, prove, seconds, skipWithout, spanOf } from "../proof.ts";
import { type Failure, findMissing, PatroniCluster, timing, versions } from "./cluster.ts";

/** One more than there are nodes: these take turns as the leader, and each fails in every way. */
const mix: readonly Failure[] = ["killed", "frozen", "stopped", "killed"];
/** How much longer than Patroni needs clients may have to wait. */
const ownPartMaxMs = 2_000;

skipWithout(findMissing());
process.stdout.write(`${versions()}; ${JSON.stringify(timing)}\n`);

exitOnSignals();
const cluster = await PatroniCluster.start();
const loaded = await LoadedInstances.start(cluster.url);

const patroniPartsMs: number[] = [];
const ownPartsMs: number[] = [];
const gapsMs: number[] = [];

await prove({
  name: "patroni",
  trials: "failures",
  count: 20,
  async run(seed) {
    const dice = makeDice(spread(seed));
    const failure = mix[seed % mix.length] as Failure;
    await using load = loaded.startLoad(seed);
    // At any moment of Patroni's loop.
    await Bun.sleep(1_000 + dice(timing.loop_wait * 1_000));
    const leader = await cluster.leader();
    const failedAtMs = performance.now();
    leader.fail(failure);
    const next = await cluster.leader(leader);
    const patroniMs = performance.now() - failedAtMs;
    await load.waitForWrites();
    await Bun.sleep(dice(3_000));
    await leader.repair(failure);
    await cluster.settle();
    const faults = await load.finish(await cluster.leaderUrl());

    const gapMs = load.workload.longestGapMs;
    const ownMs = Math.max(0, gapMs - patroniMs);
    patroniPartsMs.push(patroniMs);
    ownPartsMs.push(ownMs);
    gapsMs.push(gapMs);
    if (ownMs > ownPartMaxMs) faults.push(`our part is ${seconds(ownMs)}`);
    process.stdout.write(
      `${leader.name} ${failure}, then ${next.name}: gap ${seconds(gapMs)}, Patroni ` +
        `${seconds(patroniMs)}, ours ${seconds(ownMs)}; ${loaded.ledger.promises} promises, ` +
        `${faults.length} broken\n`,
    );
    return { faults, figures: { [failure]: 1 } };
  },
  async conclude() {
    await loaded.stop();
    return {
      text:
        `${loaded.ledger.promises} confirmed writes; gap ${spanOf(gapsMs)}; ` +
        `Patroni's part ${spanOf(patroniPartsMs)}; ours ${spanOf(ownPartsMs)}`,
    };
  },
});
