/** Instances of the real service on one database, which can be killed, and fresh gardens in it. */
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { runStatement } from "../../postgres-server.ts";
import { auditStore, type Engine, makePlace, type Place } from "../audited-store.ts";
import { RestartingService } from "../restarting-service.ts";

export interface Layout {
  readonly engine: Engine;
  /** Of each instance. */
  readonly threads: readonly number[];
}

export interface FreshGarden {
  readonly garden: string;
  readonly token: string;
}

/** Created many at a time, so that mostly nothing but the service has the database open. */
const gardensAtOnce = 100;
/** These clients may be slow on a busy machine. */
const limits = { poolSize: 1, connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 };
const startsMax = 5;

export class Deployment {
  readonly instances: readonly RestartingService[];
  readonly #engine: Engine;
  readonly #place: Place;
  readonly #gardens: FreshGarden[] = [];
  #made = 0;

  private constructor(instances: readonly RestartingService[], engine: Engine, place: Place) {
    this.instances = instances;
    this.#engine = engine;
    this.#place = place;
  }

  static async start({ engine, threads }: Layout, program?: string): Promise<Deployment> {
    const place = await makePlace(engine);
    const { database } = place;
    const instances = threads.map(
      (count) => new RestartingService({ database, args: ["--threads", String(count)], program }),
    );
    await Promise.all(instances.map((instance) => instance.start()));
    return new Deployment(instances, engine, place);
  }

  async takeGarden(): Promise<FreshGarden> {
    if (this.#gardens.length === 0) await this.#makeGardens();
    return this.#gardens.pop() as FreshGarden;
  }

  /** PostgreSQL closes the connections of all instances. */
  async cutOff(): Promise<void> {
    await runStatement(
      this.#place.database,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  }

  /** `kill -9` and a restart. Returns whether it was up. */
  async kill(instance: RestartingService): Promise<boolean> {
    if (!instance.process) return false;
    await instance.kill();
    // As a supervisor does: on PostgreSQL, a start may fail when connections are cut off.
    for (let starts = 1; this.#engine === "postgres" && starts < startsMax; starts++) {
      const isUp = await instance.start().then(
        () => true,
        () => false,
      );
      if (isUp) return true;
    }
    await instance.start();
    return true;
  }

  /** After this, nothing that a killed process began can take effect. */
  async endOf(port: number, instance: RestartingService): Promise<number> {
    await instance.exits.get(port);
    // On PostgreSQL, a statement that was sent may outlive its client.
    return this.#engine === "postgres" ? Number.POSITIVE_INFINITY : performance.now();
  }

  /** Returns which gardens it has miscounted. */
  async stop(): Promise<string[]> {
    const faults = await auditStore(this.#place.database);
    for (const instance of this.instances) await instance.kill();
    await this.#place[Symbol.asyncDispose]();
    return faults;
  }

  async #makeGardens(): Promise<void> {
    const storage = await openStorage(this.#place.database, { isServing: false, limits });
    for (let count = 0; count < gardensAtOnce; count++) {
      const garden = `garden-${++this.#made}`;
      const issue = () => issueToken(storage, { user: garden }, Date.now());
      // The connection may be cut off by the history before. One more token does no harm.
      const { token } = await issue().catch(issue);
      this.#gardens.push({ garden, token });
    }
    await storage.close();
  }
}
