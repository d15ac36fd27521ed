/** Instances of the real service on one database, which can be killed, and fresh gardens in it. */
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { runStatement } from "../../test/postgres-server.ts";
import { auditStore, type Engine, makePlace, type Place } from "../audited-store.ts";
import { RestartingService } from "../restarting-service.ts";

export interface Layout {
  readonly engine: Engine;
  /** Of each instance. */
  readonly threads: readonly number[];
}

/** Created many at a time, so that mostly nothing but the service has the database open. */
const gardensAtOnce = 100;
/** These clients may be slow on a busy machine. */
const limits = { poolSize: 1, connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 };
const startsMax = 5;

export interface GardenToken {
  readonly user: string;
  readonly token: string;
}

export class Deployment {
  readonly instances: readonly RestartingService[];
  readonly engine: Engine;
  readonly #place: Place;
  /** Each of a garden that nobody has used. */
  readonly #gardens: GardenToken[][] = [];
  #made = 0;

  private constructor({ engine, threads }: Layout, place: Place, program?: string) {
    const { database } = place;
    this.engine = engine;
    this.#place = place;
    this.instances = threads.map(
      (count) => new RestartingService({ database, args: ["--threads", String(count)], program }),
    );
  }

  static async start(layout: Layout, program?: string): Promise<Deployment> {
    const deployment = new Deployment(layout, await makePlace(layout.engine), program);
    await Promise.all(deployment.instances.map((instance) => instance.start()));
    return deployment;
  }

  /** The tokens of two users to a fresh garden. */
  async takeGarden(): Promise<readonly GardenToken[]> {
    if (this.#gardens.length === 0) await this.#makeGardens();
    return this.#gardens.pop() as GardenToken[];
  }

  /** PostgreSQL closes the connections of all instances. */
  async cutOff(): Promise<void> {
    await runStatement(
      this.#place.database,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  }

  /** `kill -9` and a restart, unless it is down already. */
  async kill(index: number): Promise<void> {
    const instance = this.instances[index];
    if (!instance?.process) return;
    await instance.kill();
    // As a supervisor does: on PostgreSQL, a start may fail when connections are cut off.
    const restart = (starts: number): Promise<void> =>
      instance.start().catch((error) => {
        if (starts === startsMax || this.engine === "sqlite") throw error;
        return restart(starts + 1);
      });
    await restart(1);
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
      const tokens: GardenToken[] = [];
      for (const user of ["ann", "bob"]) {
        const issue = () => issueToken(storage, { user, garden }, Date.now());
        // The connection may be cut off by another history. One more token does no harm.
        tokens.push({ user, token: (await issue().catch(issue)).token });
      }
      this.#gardens.push(tokens);
    }
    await storage.close();
  }
}
