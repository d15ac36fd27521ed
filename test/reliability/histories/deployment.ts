/** Instances of the real service on one database, and tokens to gardens that nobody used before. */
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { makeDatabase, runStatement } from "../../postgres-server.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { Instance } from "./instance.ts";

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

/** Made many at a time, so that nothing but the service has the database open most of the time. */
const gardensAtOnce = 100;
/** On a busy machine these clients may be as slow as the service. */
const limits = { poolSize: 1, connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 };

export class Deployment {
  readonly instances: readonly Instance[];
  readonly #engine: Engine;
  readonly #database: string;
  readonly #remove: () => unknown;
  readonly #gardens: FreshGarden[] = [];
  #made = 0;

  private constructor(
    engine: Engine,
    instances: readonly Instance[],
    database: string,
    remove: () => unknown,
  ) {
    this.#engine = engine;
    this.instances = instances;
    this.#database = database;
    this.#remove = remove;
  }

  /** `program` is another build than the real one. */
  static async start({ engine, threads }: Layout, program?: string): Promise<Deployment> {
    const [database, remove] = await makeRoom(engine);
    const instances = await Promise.all(
      threads.map((count, index) =>
        Instance.start({
          name: `${engine} ${index + 1}`,
          database,
          threads: count,
          program,
          isOutlived: engine === "postgres",
        }),
      ),
    );
    return new Deployment(engine, instances, database, remove);
  }

  async takeGarden(): Promise<FreshGarden> {
    if (this.#gardens.length === 0) await this.#makeGardens();
    return this.#gardens.pop() as FreshGarden;
  }

  /** Has PostgreSQL end the connections of all instances. */
  async cutOff(): Promise<void> {
    await runStatement(
      this.#database,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
  }

  async stop(): Promise<void> {
    for (const instance of this.instances) await instance.stop();
    await this.#remove();
  }

  /**
   * For a process that is about to end. A PostgreSQL of its own goes with it, and with that the
   * database.
   */
  abandon(): void {
    for (const instance of this.instances) instance.abandon();
    if (this.#engine === "sqlite") this.#remove();
  }

  async #makeGardens(): Promise<void> {
    const storage = await openStorage(this.#database, { isServing: false, limits });
    for (let count = 0; count < gardensAtOnce; count++) {
      const garden = `garden-${++this.#made}`;
      const issue = () => issueToken(storage, { user: garden }, Date.now());
      // The history before may have its connection cut off, and one token more does no harm.
      const { token } = await issue().catch(issue);
      this.#gardens.push({ garden, token });
    }
    await storage.close();
  }
}

async function makeRoom(engine: Engine): Promise<[database: string, remove: () => unknown]> {
  if (engine === "postgres") {
    const database = await makeDatabase();
    return [database.url, () => database.drop()];
  }
  const folder = makeTemporaryFolder();
  return [join(folder.path, "plants.db"), () => folder[Symbol.dispose]()];
}
