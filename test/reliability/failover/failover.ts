/**
 * Two instances under load on a PostgreSQL primary and its standby. The primary is lost and the
 * standby promoted, again and again. Reports broken promises.
 */
import { makeDice, spread } from "../../dice.ts";
import {
  type RunningService,
  runProgram,
  startService,
  waitFor,
} from "../../end-to-end/running-service.ts";
import { Ledger, type ListedPlant } from "../ledger.ts";
import { hangMs, listPlants } from "../plant-client.ts";
import { Workload } from "../workload.ts";
import { ServerPair, send, signalAll } from "./server-pair.ts";

/**
 * `killed`: with commits that reached the standby but were not confirmed. `cut off`: killed with
 * commits that never reached the standby. `frozen`: silent, with open connections. `shut down`: a
 * planned switchover.
 */
export const losses = ["killed", "cut off", "frozen", "shut down"] as const;
export type Loss = (typeof losses)[number];

export interface Failover {
  /** From the promotion until every instance has written. */
  readonly untilWritesMs: number;
  readonly longestRequestMs: number;
  readonly faults: readonly string[];
}

const clientsCount = 12;
const instancesCount = 2;
const writesAgainMs = 10_000;

export class FailoverTrial {
  readonly pair: ServerPair;
  readonly #instances: readonly RunningService[];
  readonly #ledger = new Ledger();

  private constructor(pair: ServerPair, instances: readonly RunningService[]) {
    this.pair = pair;
    this.#instances = instances;
  }

  static async start(): Promise<FailoverTrial> {
    const pair = await ServerPair.start();
    const { out } = await runProgram(["token", "create", "gardener"], {
      PLANTSTORE_DATABASE: pair.url,
    });
    const instances = Array.from({ length: instancesCount }, async () => ({
      ...(await startService({ database: pair.url })),
      token: out.trim(),
    }));
    return new FailoverTrial(pair, await Promise.all(instances));
  }

  get counts(): Ledger["counts"] {
    return this.#ledger.counts;
  }

  /** One loss and promotion under load. Then all promises made so far are checked. */
  async run(loss: Loss, seed: number, extraOutageMs = 0): Promise<Failover> {
    const dice = makeDice(spread(seed));
    const ledger = this.#ledger;
    const workload = new Workload(this.#instances, ledger, { clients: clientsCount, seed });
    await Bun.sleep(500 + dice(500));
    const readiness = new Readiness(this.#instances, ledger);
    await this.#lose(loss, dice);
    await Bun.sleep(400 + dice(1_200) + extraOutageMs);
    workload.firstWrites.clear();
    const promotedAtMs = performance.now();
    await this.pair.promote();
    await waitFor(() => workload.firstWrites.size === instancesCount || undefined).catch(() =>
      ledger.fault("no writes within ten seconds of the promotion"),
    );
    const untilWritesMs = Math.max(...workload.firstWrites.values()) - promotedAtMs;
    if (untilWritesMs > writesAgainMs) ledger.fault("writes only later than ten seconds");
    await Bun.sleep(300 + dice(500));
    await workload.stop();
    await readiness.stop();
    await this.#checkAlive();
    const faults = ledger.audit(await this.#list());
    return { untilWritesMs, longestRequestMs: workload.longestMs, faults };
  }

  async stop(): Promise<void> {
    for (const service of this.#instances) await service[Symbol.asyncDispose]();
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

  async #checkAlive(): Promise<void> {
    for (const service of this.#instances) {
      const isAlive = await Promise.race([
        service.exited.then(() => false),
        Bun.sleep(0).then(() => true),
      ]);
      if (!isAlive) throw new Error(`An instance ended: ${service.output().errors}`);
    }
  }

  /** All plants. Every instance must list the same. */
  async #list(): Promise<ListedPlant[]> {
    const [first = [], ...others] = await Promise.all(
      this.#instances.map((service) => listPlants(service, service.token)),
    );
    if (others.some((list) => !Bun.deepEquals(list, first))) {
      this.#ledger.fault("the instances list different plants");
    }
    return first;
  }
}

/** Polls `/readyz` of every instance: it must fail at some time, and succeed in the end. */
class Readiness {
  readonly #polling: Promise<void>[];
  #isStopping = false;

  constructor(instances: readonly RunningService[], ledger: Ledger) {
    this.#polling = instances.map((service) => this.#poll(service, ledger));
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#polling);
  }

  async #poll(service: RunningService, ledger: Ledger): Promise<void> {
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
    if (!seen.includes(503)) ledger.fault("/readyz never failed");
    if (seen.at(-1) !== 200) ledger.fault("/readyz did not come back");
  }
}
