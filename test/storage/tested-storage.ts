/**
 * What the storage contract is tested with: an open storage, and short forms of writes and
 * outcomes.
 */
import { toKeyUse } from "../../src/domain/keys.ts";
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

export interface TestedStorage {
  readonly storage: Storage;
  /** Another process's view of the same data. The test closes it. */
  openAgain(options?: WriterOptions): Promise<Storage>;
  /** Runs a statement on the database itself, for what no service would write. */
  execute(sql: string): Promise<unknown>;
  remove(): Promise<void>;
}

/**
 * A storage on a database whose tables are emptied: that takes far less time than a new database or
 * new connections for each test.
 */
export function reuse(storage: Storage, database: TestDatabase, url = database.url): TestedStorage {
  return {
    storage,
    openAgain: (others) => openPostgres(url, { isServing: false, ...others }),
    execute: (sql) => database.query(sql),
    remove: async () => {
      const tables = ["plants", "gardens", "events", "idempotency_keys", "tokens"];
      await database.query(tables.map((table) => `DELETE FROM ${table}`).join("; "));
    },
  };
}

const author = { user: "ada", atMs: 0 };

interface CreateFields extends Partial<CreateWrite> {
  readonly idempotency?:
    | { key: string; index?: number | undefined; nowMs: number; expiresAtMs: number }
    | undefined;
}

export function create({ idempotency, ...fields }: CreateFields = {}): CreateWrite {
  const plant = { id: undefined, name: "Fern", tag: "", key: undefined };
  const write: CreateWrite = { kind: "create", ...author, garden: "home", ...plant, ...fields };
  if (!idempotency) return write;
  const { key, index, nowMs, expiresAtMs } = idempotency;
  return { ...write, key: { ...toKeyUse(key, index, write, nowMs), expiresAtMs } };
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
