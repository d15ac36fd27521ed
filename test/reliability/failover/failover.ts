/**
 * Two instances under load on a pair of servers, of which the one that takes writes is lost and the
 * other one promoted, again and again. Tells which promises were broken.
 */
import { makeDice, spread } from "../../dice.ts";
import {
  type RunningService,
  runProgram,
  startService,
  waitFor,
} from "../../end-to-end/running-service.ts";
import { Gardeners, hangMs } from "../gardeners.ts";
import { Ledger, type ListedPlant, readList } from "../ledger.ts";
import { ServerPair, send, signalAll } from "./server-pair.ts";

/**
 * `killed`: after commits that reached the standby, but whose clients never heard of them. `cut
 * off`: killed after work that never reached the standby. `frozen`: it falls silent on open
 * connections. `shut down`: as in a planned switchover.
 */
export const losses = ["killed", "cut off", "frozen", "shut down"] as const;
export type Loss = (typeof losses)[number];

interface Instance {
  readonly service: RunningService;
  readonly token: string;
}

export interface Failover {
  readonly loss: Loss;
  /** From the promotion to a write on each instance. */
  readonly untilWritesMs: number;
  readonly longestRequestMs: number;
  readonly faults: readonly string[];
  readonly counts: Ledger["counts"];
}

const gardenersCount = 12;
const instancesCount = 2;
const writesAgainMs = 10_000;

export class FailoverTrial {
  readonly pair: ServerPair;
  readonly #instances: readonly Instance[];
  readonly #ledger = new Ledger();

  private constructor(pair: ServerPair, instances: readonly Instance[]) {
    this.pair = pair;
    this.#instances = instances;
  }

  static async start(): Promise<FailoverTrial> {
    const pair = await ServerPair.start();
    const { out } = await runProgram(["token", "create", "gardener"], {
      PLANTSTORE_DATABASE: pair.url,
    });
    const instances = Array.from({ length: instancesCount }, async () => ({
      service: await startService({ database: pair.url }),
      token: out.trim(),
    }));
    return new FailoverTrial(pair, await Promise.all(instances));
  }

  /** One loss and promotion under load, to the check of all that was ever answered. */
  async run(loss: Loss, seed: number, extraOutageMs = 0): Promise<Failover> {
    const dice = makeDice(spread(seed));
    const ledger = this.#ledger;
    const gardeners = new Gardeners(this.#instances, ledger, gardenersCount, seed);
    await Bun.sleep(500 + dice(500));
    const readiness = new Readiness(this.#instances, ledger);
    await this.#lose(loss, dice);
    await Bun.sleep(400 + dice(1_200) + extraOutageMs);
    gardeners.firstWrites.clear();
    const promotedAtMs = performance.now();
    await this.pair.promote();
    await waitFor(() => gardeners.firstWrites.size === instancesCount || undefined).catch(() =>
      ledger.fault("no writes within ten seconds of the promotion"),
    );
    const untilWritesMs = Math.max(...gardeners.firstWrites.values()) - promotedAtMs;
    if (untilWritesMs > writesAgainMs) ledger.fault("writes only later than ten seconds");
    await Bun.sleep(300 + dice(500));
    await gardeners.stop();
    await readiness.stop();
    await this.#checkLife();
    const faults = ledger.audit(await this.#list());
    const { longestMs: longestRequestMs } = gardeners;
    return { loss, untilWritesMs, longestRequestMs, faults, counts: ledger.counts };
  }

  async stop(): Promise<void> {
    for (const { service } of this.#instances) await service[Symbol.asyncDispose]();
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

  async #checkLife(): Promise<void> {
    for (const { service } of this.#instances) {
      const isAlive = await Promise.race([
        service.exited.then(() => false),
        Bun.sleep(0).then(() => true),
      ]);
      if (!isAlive) throw new Error(`An instance ended: ${service.output().errors}`);
    }
  }

  /** All plants, as each instance lists them. */
  async #list(): Promise<ListedPlant[]> {
    const lists = await Promise.all(
      this.#instances.map(async ({ service, token }) => {
        const response = await service.call("GET /plants?fields=id,name,tag", { token });
        return response.text();
      }),
    );
    const unread = lists.find((list) => !list.startsWith("["));
    if (unread !== undefined) throw new Error(`The plants cannot be listed: ${unread}`);
    if (new Set(lists).size > 1) this.#ledger.fault("the instances list different plants");
    return readList(lists[0] as string);
  }
}

/**
 * Asks every instance whether it is ready, all the time: it must say no once, and yes in the end.
 */
class Readiness {
  readonly #working: Promise<void>[];
  #isStopping = false;

  constructor(instances: readonly Instance[], ledger: Ledger) {
    this.#working = instances.map(({ service }) => this.#watch(service, ledger));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#working);
  }

  async #watch(service: Instance["service"], ledger: Ledger): Promise<void> {
    const seen: number[] = [];
    while (!this.#isStopping) {
      try {
        const signal = AbortSignal.timeout(hangMs);
        seen.push((await service.call("GET /readyz", { signal })).status);
      } catch (error) {
        ledger.fault(`/readyz: ${error}`);
      }
      await Bun.sleep(50);
    }
    if (!seen.includes(503)) ledger.fault("/readyz never said that it was not ready");
    if (seen.at(-1) !== 200) ledger.fault("/readyz did not come back");
  }
}
