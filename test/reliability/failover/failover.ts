/**
 * Two instances under load on a PostgreSQL primary and its standby. The primary is lost and the
 * standby promoted, again and again. Reports broken promises.
 */
import { makeDice, spread } from "../../dice.ts";
import { waitFor } from "../../end-to-end/running-service.ts";
import { send, signalAll } from "../../processes.ts";
import type { Ledger } from "../ledger.ts";
import { LoadedInstances } from "../loaded-instances.ts";
import { ServerPair } from "./server-pair.ts";

/**
 * `killed`: with commits that reached the standby but were not confirmed. `cut off`: killed with
 * commits that never reached the standby. `frozen`: silent, with open connections. `shut down`: a
 * planned switchover.
 */
export type Loss = "killed" | "cut off" | "frozen" | "shut down";

export interface Failover {
  /** From the promotion until every instance has written. */
  readonly untilWritesMs: number;
  readonly longestRequestMs: number;
  readonly faults: readonly string[];
}

const writesAgainMs = 10_000;

export class FailoverTrial {
  readonly pair: ServerPair;
  readonly #instances: LoadedInstances;

  private constructor(pair: ServerPair, instances: LoadedInstances) {
    this.pair = pair;
    this.#instances = instances;
  }

  static async start(): Promise<FailoverTrial> {
    const pair = await ServerPair.start();
    return new FailoverTrial(pair, await LoadedInstances.start(pair.url));
  }

  get counts(): Ledger["counts"] {
    return this.#instances.ledger.counts;
  }

  /** One loss and promotion under load. Then all promises made so far are checked. */
  async run(loss: Loss, seed: number, extraOutageMs = 0): Promise<Failover> {
    const dice = makeDice(spread(seed));
    const { ledger } = this.#instances;
    await using load = this.#instances.startLoad(seed);
    await Bun.sleep(500 + dice(500));
    await this.#lose(loss, dice);
    await Bun.sleep(400 + dice(1_200) + extraOutageMs);
    const promotedAtMs = performance.now();
    const [writesAtMs] = await Promise.all([load.waitForWrites(), this.pair.promote()]);
    const untilWritesMs = writesAtMs - promotedAtMs;
    if (untilWritesMs > writesAgainMs) ledger.fault("writes only later than ten seconds");
    await Bun.sleep(300 + dice(500));
    const faults = await load.finish(this.pair.primaryUrl);
    return { untilWritesMs, longestRequestMs: load.workload.longestMs, faults };
  }

  async stop(): Promise<void> {
    await this.#instances.stop();
    await this.pair.stop();
  }

  async #lose(loss: Loss, dice: (sides: number) => number): Promise<void> {
    const { primary } = this.pair;
    switch (loss) {
      case "killed":
        await this.pair.stopAnswers();
        return signalAll(primary, "SIGKILL");
      case "cut off":
        await this.pair.stopReplication();
        await Bun.sleep(100 + dice(300));
        return signalAll(primary, "SIGKILL");
      case "frozen":
        return signalAll(primary, "SIGSTOP");
      case "shut down":
        process.kill(primary.pid, "SIGINT");
        await waitFor(() => (send(primary.pid, 0) ? undefined : true));
    }
  }
}
