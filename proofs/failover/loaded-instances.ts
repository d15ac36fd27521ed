/**
 * Two instances of Plant Store on one PostgreSQL, and clients that write to both while its servers
 * fail. The ledger outlives each failure, so every audit covers all promises made so far.
 */

import { auditStore } from "../../testing/audited-store.ts";
import {
  makeToken,
  type RunningService,
  startService,
  waitFor,
} from "../../testing/running-service.ts";
import { auditGarden, listPlants } from "../audit.ts";
import { Ledger } from "../ledger.ts";
import { type Instance, Workload } from "../workload.ts";

export class LoadedInstances {
  readonly ledger = new Ledger();

  private constructor(
    readonly services: readonly (RunningService & Instance)[],
    readonly clients: number,
  ) {}

  static async start(database: string, clients = 12): Promise<LoadedInstances> {
    const token = await makeToken({ database }, "gardener");
    const start = async () => ({ ...(await startService({ database })), token });
    return new LoadedInstances(await Promise.all([start(), start()]), clients);
  }

  /**
   * Clients write without rest until `fail` is over. It returns the server that is primary then.
   * Returns every broken promise.
   */
  async audit(seed: number, fail: (load: Workload) => Promise<string>): Promise<string[]> {
    const load = new Workload(this.services, this.ledger, { clients: this.clients, seed });
    const server = await fail(load).finally(() => load.stop());
    const [list, otherList] = await Promise.all(
      this.services.map(async (service) => {
        // Reads may pause for a moment longer than writes that waited in PgBouncer.
        await waitFor(async () => (await service.call("GET /readyz")).ok || undefined);
        return listPlants(service, service.token);
      }),
    );
    if (!Bun.deepEquals(list, otherList)) this.ledger.fault("the instances list different plants");
    const service = this.services[0] as Instance;
    const found = await auditGarden(service, service.token, this.ledger);
    return [...found, ...(await auditStore(server))];
  }

  async stop(): Promise<void> {
    for (const service of this.services) await service[Symbol.asyncDispose]();
  }
}
