/**
 * Two instances of Plant Store on one PostgreSQL, and clients that write to both while its servers
 * fail. The ledger outlives each load, so every audit covers all promises made so far.
 */
import {
  makeToken,
  type RunningService,
  startService,
  waitFor,
} from "../end-to-end/running-service.ts";
import { auditStore } from "./audited-store.ts";
import { Ledger, type ListedPlant } from "./ledger.ts";
import { hangMs, listPlants } from "./plant-client.ts";
import { Workload } from "./workload.ts";

const clientsCount = 12;
const instancesCount = 2;
/**
 * PgBouncer finishes writes that waited in it while the search for the server still pauses, for up
 * to 0.75 s.
 */
const readyAgainMs = 2_000;

export class LoadedInstances {
  readonly services: readonly RunningService[];
  readonly ledger = new Ledger();

  private constructor(services: readonly RunningService[]) {
    this.services = services;
  }

  static async start(database: string): Promise<LoadedInstances> {
    const token = await makeToken({ database }, "gardener");
    const services = Array.from({ length: instancesCount }, async () => ({
      ...(await startService({ database })),
      token,
    }));
    const instances = new LoadedInstances(await Promise.all(services));
    process.on("exit", () => {
      for (const service of instances.services) service.signal("SIGKILL");
    });
    return instances;
  }

  /** `mayStayReady`: the failure may be over before `/readyz` shows it. */
  startLoad(seed: number, mayStayReady = false): Load {
    return new Load(this, seed, mayStayReady);
  }

  async stop(): Promise<void> {
    for (const service of this.services) await service[Symbol.asyncDispose]();
  }
}

/** Writes without rest, from its start until `finish`. */
export class Load {
  readonly workload: Workload;
  readonly #instances: LoadedInstances;
  readonly #readiness: Readiness;

  constructor(instances: LoadedInstances, seed: number, mayStayReady: boolean) {
    const { services, ledger } = instances;
    this.#instances = instances;
    this.workload = new Workload(services, ledger, { clients: clientsCount, seed });
    this.#readiness = new Readiness(services, ledger, mayStayReady);
  }

  /** Until every instance has written again. Returns when the last one did. */
  async waitForWrites(): Promise<number> {
    const { firstWrites } = this.workload;
    firstWrites.clear();
    await waitFor(() => firstWrites.size === instancesCount || undefined).catch(() =>
      this.#instances.ledger.fault("no writes on some instance"),
    );
    return Math.max(...firstWrites.values());
  }

  /** Stops the clients, and returns every broken promise. `server` takes writes now. */
  async finish(server: string): Promise<string[]> {
    await this[Symbol.asyncDispose]();
    await this.#checkAlive();
    const plants = await this.#list();
    return [...this.#instances.ledger.audit(plants), ...(await auditStore(server))];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.workload.stop();
    await this.#readiness.stop();
  }

  async #checkAlive(): Promise<void> {
    for (const service of this.#instances.services) {
      const isAlive = await Promise.race([
        service.exited.then(() => false),
        Bun.sleep(0).then(() => true),
      ]);
      if (!isAlive) throw new Error(`An instance ended: ${service.output().errors}`);
    }
  }

  /** All plants. Every instance must list the same. */
  async #list(): Promise<ListedPlant[]> {
    const { services, ledger } = this.#instances;
    const [first = [], ...others] = await Promise.all(
      services.map((service) => listPlants(service, service.token)),
    );
    if (others.some((list) => !Bun.deepEquals(list, first))) {
      ledger.fault("the instances list different plants");
    }
    return first;
  }
}

/** Polls `/readyz` of every instance: it fails at some time, and must succeed soon after. */
class Readiness {
  readonly #polling: Promise<void>[];
  readonly #mayStayReady: boolean;
  #stopsAtMs = Number.POSITIVE_INFINITY;

  constructor(instances: readonly RunningService[], ledger: Ledger, mayStayReady: boolean) {
    this.#mayStayReady = mayStayReady;
    this.#polling = instances.map((service) => this.#poll(service, ledger));
  }

  async stop(): Promise<void> {
    this.#stopsAtMs = performance.now();
    await Promise.all(this.#polling);
  }

  async #poll(service: RunningService, ledger: Ledger): Promise<void> {
    const seen: number[] = [];
    const isOver = () => {
      const stoppedMs = performance.now() - this.#stopsAtMs;
      return stoppedMs >= readyAgainMs || (stoppedMs >= 0 && seen.at(-1) === 200);
    };
    while (!isOver()) {
      try {
        const signal = AbortSignal.timeout(hangMs);
        seen.push((await service.call("GET /readyz", { signal })).status);
      } catch (error) {
        ledger.fault(`/readyz: ${error}`);
      }
      await Bun.sleep(50);
    }
    if (!seen.includes(503) && !this.#mayStayReady) ledger.fault("/readyz never failed");
    if (seen.at(-1) !== 200) ledger.fault("/readyz did not come back");
  }
}
