/**
 * Two instances of Plant Store on one PostgreSQL, and clients that write to both while its servers
 * fail. The ledger outlives each failure, so every audit covers all promises made so far.
 */
import {
  makeToken,
  type RunningService,
  startService,
  waitFor,
} from "../../test/end-to-end/running-service.ts";
import { auditGarden, listPlants } from "../audit.ts";
import { auditStore } from "../audited-store.ts";
import { hangMs } from "../kept-connection.ts";
import { Ledger } from "../ledger.ts";
import { Workload } from "../workload.ts";

/** PgBouncer finishes writes that waited in it while reads still pause, for up to 0.75 s. */
const readyAgainMs = 2_000;

export class LoadedInstances {
  readonly ledger = new Ledger();

  private constructor(
    readonly services: readonly RunningService[],
    readonly clients: number,
  ) {}

  static async start(database: string, clients = 12): Promise<LoadedInstances> {
    const token = await makeToken({ database }, "gardener");
    const start = async () => ({ ...(await startService({ database })), token });
    return new LoadedInstances(await Promise.all([start(), start()]), clients);
  }

  /**
   * Clients write without rest until `fail` is over. It returns the server that is primary then.
   * Returns every broken promise. `mayStayReady`: it may be over before `/readyz` shows it.
   */
  async audit(
    seed: number,
    fail: (load: Workload) => Promise<string>,
    mayStayReady = false,
  ): Promise<string[]> {
    const load = new Workload(this.services, this.ledger, { clients: this.clients, seed });
    let isOver = false;
    const watching = this.services.map((service) => this.#watch(service, () => isOver));
    const server = await fail(load).finally(async () => {
      await load.stop();
      isOver = true;
    });
    if ((await Promise.all(watching)).includes(false) && !mayStayReady) {
      this.ledger.fault("/readyz never failed");
    }
    const [service, other] = this.services as [RunningService, RunningService];
    const lists = await Promise.all([service, other].map((each) => listPlants(each, each.token)));
    if (!Bun.deepEquals(lists[0], lists[1])) {
      this.ledger.fault("the instances list different plants");
    }
    const found = await auditGarden(service, service.token, this.ledger);
    return [...found, ...(await auditStore(server))];
  }

  async stop(): Promise<void> {
    for (const service of this.services) await service[Symbol.asyncDispose]();
  }

  /** `/readyz` always responds, and soon after with 200. Returns whether it had another status. */
  async #watch(service: RunningService, isOver: () => boolean): Promise<boolean> {
    let hasFailed = false;
    const isReady = async () => {
      const signal = AbortSignal.timeout(hangMs);
      return (await service.call("GET /readyz", { signal })).status === 200 || undefined;
    };
    try {
      while (!isOver()) {
        hasFailed = !(await isReady()) || hasFailed;
        await Bun.sleep(50);
      }
      await waitFor(isReady, undefined, readyAgainMs);
    } catch (error) {
      this.ledger.fault(`/readyz: ${error}`);
    }
    return hasFailed;
  }
}
