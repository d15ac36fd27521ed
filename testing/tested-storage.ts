/** Short forms of writes and outcomes, for tests of the storage. */
import { toKeyUse } from "../src/domain/idempotency.ts";
import type { CreateWrite, DeleteWrite, Outcome, PutWrite } from "../src/domain/ports.ts";

/** Between tests: that takes far less time than a new database or new connections for each. */
export const emptyTables = ["plants", "gardens", "events", "idempotency_keys", "tokens"]
  .map((table) => `DELETE FROM ${table};`)
  .join("");

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
