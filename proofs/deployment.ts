/** The real program on one database: instances that are stopped or killed and started again. */
import { issueToken } from "../src/auth/opaque-token.ts";
import { openStorage } from "../src/storage/open.ts";
import { auditStore, type Engine, makePlace, type Place } from "../testing/audited-store.ts";
import { runStatement } from "../testing/postgres-server.ts";
import { type RunningService, startService } from "../testing/running-service.ts";

export class RestartingService {
  /** The exit codes of all processes so far, by port. */
  readonly exits = new Map<number, Promise<number>>();
  /** Absent while it is down. */
  process: RunningService | undefined;

  constructor(
    private readonly options: {
      readonly database: string;
      readonly args: readonly string[];
      readonly program: string | undefined;
    },
  ) {}

  /** Another one after each start, and 0 while it is down. */
  get port(): number {
    return this.process?.port ?? 0;
  }

  async start(program = this.options.program): Promise<void> {
    this.process = await startService({ ...this.options, program });
    this.exits.set(this.process.port, this.process.exited);
  }

  async kill(): Promise<void> {
    const old = this.process;
    this.process = undefined;
    await old?.[Symbol.asyncDispose]();
  }

  /** As a supervisor does. Fails if its exit code isn't 0. */
  async stop(): Promise<void> {
    this.process?.signal("SIGTERM");
    const exitCode = await this.process?.exited;
    await this.kill();
    if (exitCode !== 0) throw new Error(`An instance ended with ${exitCode}.`);
  }
}

export interface Layout {
  readonly engine: Engine;
  /** Of each instance. */
  readonly threads: readonly number[];
}

export interface GardenToken {
  readonly user: string;
  readonly token: string;
}

/** Several instances on a new database, with fresh gardens. */
export class Deployment {
  #gardens = 0;

  private constructor(
    readonly engine: Engine,
    readonly place: Place,
    readonly instances: readonly RestartingService[],
  ) {}

  static async start({ engine, threads }: Layout, program?: string): Promise<Deployment> {
    const place = await makePlace(engine);
    const instances = threads.map((count) => {
      const args = ["--threads", String(count)];
      return new RestartingService({ database: place.database, args, program });
    });
    await Promise.all(instances.map((instance) => instance.start()));
    return new Deployment(engine, place, instances);
  }

  /** The tokens of two users to a fresh garden. */
  async takeGarden(): Promise<readonly GardenToken[]> {
    const garden = `garden-${++this.#gardens}`;
    const limits = { poolSize: 1, connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 };
    const issue = async (user: string) => {
      const storage = await openStorage(this.place.database, { isServing: false, limits });
      const { token } = await issueToken(storage, { user, garden }, Date.now());
      await storage.close();
      return { user, token };
    };
    // Its connection may be cut off with those of the instances. One more token does no harm.
    return Promise.all(["ann", "bob"].map((user) => issue(user).catch(() => issue(user))));
  }

  /** PostgreSQL closes the connections of all instances. */
  async cutOff(): Promise<void> {
    await runStatement(
      this.place.database,
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
    await instance.start().catch(() => instance.start());
  }

  /** Returns which gardens it has miscounted. */
  async stop(): Promise<string[]> {
    const faults = await auditStore(this.place.database);
    for (const instance of this.instances) await instance.kill();
    await this.place[Symbol.asyncDispose]();
    return faults;
  }
}
