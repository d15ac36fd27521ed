/**
 * What the storage contract is tested with: an open storage, and short forms of writes and
 * outcomes.
 */
import {
  type CreateWrite,
  type DeleteWrite,
  GardenLocked,
  type Outcome,
  type PutWrite,
  type Write,
} from "../../src/domain/ports.ts";
import { openPostgres } from "../../src/storage/postgres/engine.ts";
import type { Storage, WriterOptions } from "../../src/storage/storage.ts";
import type { TestDatabase } from "../postgres-server.ts";

export type StorageWish = WriterOptions;

export interface TestedStorage {
  readonly storage: Storage;
  /** Another process's view of the same data. The test closes it. */
  openAgain(options?: StorageWish): Promise<Storage>;
  /** Runs a statement on the database itself, for what no service would write. */
  execute(sql: string): Promise<unknown>;
  remove(): Promise<void>;
}

/**
 * Storages on one database. Emptying its tables takes far less time than a new database or new
 * connections for each test.
 */
export class PostgresStorages {
  readonly #url: string;
  readonly #database: TestDatabase;
  readonly #opened = new Map<number | undefined, Storage>();

  constructor(database: TestDatabase, url = database.url) {
    this.#database = database;
    this.#url = url;
  }

  async make({ plantsMax }: StorageWish = {}): Promise<TestedStorage> {
    const known = this.#opened.get(plantsMax);
    const storage = known ?? (await openPostgres(this.#url, { isServing: true, plantsMax }));
    this.#opened.set(plantsMax, storage);
    return {
      storage,
      openAgain: (others) => openPostgres(this.#url, { isServing: false, ...others }),
      execute: (sql) => this.#database.query(sql),
      remove: async () => {
        const tables = ["plants", "gardens", "events", "idempotency_keys", "tokens"];
        await this.#database.query(tables.map((table) => `DELETE FROM ${table}`).join("; "));
      },
    };
  }

  async close(): Promise<void> {
    for (const storage of this.#opened.values()) await storage.close();
  }
}

const author = { user: "ada", atMs: 0 };

export function create(fields: Partial<CreateWrite> = {}): CreateWrite {
  return {
    kind: "create",
    ...author,
    garden: "home",
    id: undefined,
    name: "Fern",
    tag: "",
    idempotency: undefined,
    ...fields,
  };
}

export function put(fields: Partial<PutWrite> = {}): PutWrite {
  return { kind: "put", ...author, garden: "home", id: 7n, name: "Fern", tag: "", ...fields };
}

export function remove(id: bigint, garden = "home"): DeleteWrite {
  return { kind: "delete", ...author, garden, id };
}

export function created(id: bigint, replayed = false): Outcome {
  return { kind: "created", id, replayed };
}

/** On a busy machine a garden may be locked for longer than a group waits. */
export async function applyPatiently(
  storage: Storage,
  writes: readonly Write[],
): Promise<readonly Outcome[]> {
  return storage.apply(writes).catch((error) => {
    if (!(error instanceof GardenLocked)) throw error;
    return applyPatiently(storage, writes);
  });
}
