/** Instances of the real service on one database, which can be killed, and fresh gardens in it. */
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { makeDatabase, runStatement } from "../../postgres-server.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { auditStore } from "../audited-store.ts";
import type { Address } from "../kept-connection.ts";

export type Engine = "sqlite" | "postgres";

export interface Layout {
  readonly engine: Engine;
  /** Of each instance. */
  readonly threads: readonly number[];
}

export interface FreshGarden {
  readonly garden: string;
  readonly token: string;
}

/** One process of an instance. */
export interface Life extends Address {
  isKilled: boolean;
  /** After this, nothing that it began can take effect. */
  readonly endedAtMs: Promise<number>;
}

/** Created many at a time, so that mostly nothing but the service has the database open. */
const gardensAtOnce = 100;
/** These clients may be slow on a busy machine. */
const limits = { poolSize: 1, connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 };
const startsMax = 5;

export class Deployment {
  readonly instances: readonly Instance[];
  readonly #database: string;
  readonly #remove: () => unknown;
  readonly #gardens: FreshGarden[] = [];
  #made = 0;

  private constructor(instances: readonly Instance[], database: string, remove: () => unknown) {
    this.instances = instances;
    this.#database = database;
    this.#remove = remove;
  }

  static async start({ engine, threads }: Layout, program?: string): Promise<Deployment> {
    const [database, remove] = await makeRoom(engine);
    const instances = threads.map((count, index) => {
      const args = ["--threads", String(count)];
      return new Instance(engine, index + 1, () => startService({ args, database, program }));
    });
    await Promise.all(instances.map((instance) => instance.start()));
    return new Deployment(instances, database, remove);
  }

  async takeGarden(): Promise<FreshGarden> {
    if (this.#gardens.length === 0) await this.#makeGardens();
    return this.#gardens.pop() as FreshGarden;
  }

  /** PostgreSQL closes the connections of all instances. */
  async cutOff(): Promise<void> {
    await runStatement(
      this.#database,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  }

  /** Returns which gardens it has miscounted. */
  async stop(): Promise<string[]> {
    const faults = await auditStore(this.#database);
    for (const instance of this.instances) await instance.stop();
    await this.#remove();
    return faults;
  }

  async #makeGardens(): Promise<void> {
    const storage = await openStorage(this.#database, { isServing: false, limits });
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

export async function makeRoom(engine: Engine): Promise<[database: string, remove: () => unknown]> {
  if (engine === "postgres") {
    const database = await makeDatabase();
    return [database.url, () => database.drop()];
  }
  const folder = makeTemporaryFolder();
  return [join(folder.path, "plants.db"), () => folder[Symbol.dispose]()];
}

export class Instance {
  readonly name: string;
  /** Absent while it is down. */
  life: Life | undefined;
  readonly #engine: Engine;
  readonly #begin: () => Promise<RunningService>;
  #service: RunningService | undefined;

  constructor(engine: Engine, number: number, begin: () => Promise<RunningService>) {
    this.name = `${engine} ${number}`;
    this.#engine = engine;
    this.#begin = begin;
  }

  async start(): Promise<void> {
    const service = await this.#persist();
    this.#service = service;
    this.life = {
      port: service.port,
      isSecure: false,
      isKilled: false,
      // On PostgreSQL, a statement that was sent may outlive its client.
      endedAtMs: service.exited.then(() =>
        this.#engine === "postgres" ? Number.POSITIVE_INFINITY : performance.now(),
      ),
    };
  }

  /** As a supervisor does: on PostgreSQL, a start may fail when connections are cut off. */
  async #persist(): Promise<RunningService> {
    for (let starts = 1; this.#engine === "postgres" && starts < startsMax; starts++) {
      const service = await this.#begin().catch(() => undefined);
      if (service) return service;
    }
    return this.#begin();
  }

  /** `kill -9` and a restart. Returns whether it was up. */
  async kill(): Promise<boolean> {
    if (!this.life) return false;
    this.life.isKilled = true;
    this.life = undefined;
    await this.stop();
    await this.start();
    return true;
  }

  async stop(): Promise<void> {
    await this.#service?.[Symbol.asyncDispose]();
  }
}
