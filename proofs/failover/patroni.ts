/**
 * `npm run prove failover patroni [failures] [seed]`: the leader of a Patroni cluster behind
 * HAProxy fails, many times.
 */
import { makeDice, spread } from "../../test/dice.ts";
import { prove } from "../proof.ts";
import type { Workload } from "../workload.ts";
import { LoadedInstances } from "./loaded-instances.ts";
import { type Failure, PatroniCluster, timing, urlOf } from "./patroni-cluster.ts";

/** One more than there are nodes: these take turns as the leader, and each fails in every way. */
const mix: readonly Failure[] = ["killed", "frozen", "stopped", "killed"];
/** How much longer clients may wait than Patroni needs: for HAProxy and for us. */
const ownPartMaxMs = 2_000;

const cluster = await PatroniCluster.start();
const loaded = await LoadedInstances.start(cluster.url);

await prove({
  trials: "failures",
  count: 20,
  async run(seed) {
    const dice = makeDice(spread(seed));
    const failure = mix[seed % mix.length] as Failure;
    const parts = { "ms without writes": 0, "ms of these ours": 0 };
    const fail = async (load: Workload) => {
      // At any moment of Patroni's loop.
      await Bun.sleep(1_000 + dice(timing.loop_wait * 1_000));
      const leader = await cluster.leader();
      const failedAtMs = performance.now();
      leader.fail(failure);
      await cluster.leader(leader);
      const patroniMs = performance.now() - failedAtMs;
      await load.untilWritten();
      const gapMs = Math.round(load.longestGapMs);
      const ownMs = Math.max(0, Math.round(gapMs - patroniMs));
      Object.assign(parts, { "ms without writes": gapMs, "ms of these ours": ownMs });
      if (ownMs > ownPartMaxMs) loaded.ledger.fault(`our part of ${gapMs} ms is ${ownMs} ms`);
      await Bun.sleep(dice(3_000));
      await leader.repair(failure);
      await cluster.settle();
      return urlOf((await cluster.leader()).port);
    };
    // A planned stop may be over within the two seconds that `/readyz` waits for the database.
    const faults = await loaded.audit(seed, fail, failure === "stopped");
    return { faults, figures: { [failure]: 1, ...parts } };
  },
  conclude: () => loaded.stop(),
});
