/**
 * Applies a group of writes to a SQLite connection in one durable transaction. Runs in the worker.
 */
import type { Database } from "bun:sqlite";
import { assignedIdMax } from "../../domain/plant.ts";
import {
  type CreateWrite,
  countedIdMax,
  type DeleteWrite,
  type Outcome,
  type TokenUse,
  type Write,
} from "../../domain/storage.ts";
import { mapCommitError } from "./errors.ts";
import { Quota } from "./quota.ts";

/** Few enough that writers who wait behind it do not notice. */
const forgottenKeysMax = 1_000;

export interface Writer {
  apply(writes: readonly Write[]): Outcome[];
  forgetKeys(nowMs: number): boolean;
  noteTokenUses(uses: readonly TokenUse[]): void;
}

export function createWriter(database: Database, plantsMax?: number): Writer {
  const quota = plantsMax === undefined ? undefined : new Quota(database, plantsMax);
  const begin = database.query("BEGIN IMMEDIATE");
  const commit = database.query("COMMIT");
  const insertPlant = database.query(
    "INSERT INTO plants (garden, id, name, tag) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
  );
  const findPlant = database.query("SELECT 1 FROM plants WHERE garden = ? AND id = ?");
  const deletePlant = database.query("DELETE FROM plants WHERE garden = ? AND id = ?");
  const findFreeId = database.query<{ id: bigint | null }, [string, bigint, string]>(
    `SELECT min(id) + 1 AS id FROM plants AS taken WHERE garden = ? AND id >= ? AND NOT EXISTS
       (SELECT 1 FROM plants WHERE garden = ? AND id = taken.id + 1)`,
  );
  const findLastId = database.query<{ last_id: bigint }, [string]>(
    "SELECT last_id FROM gardens WHERE garden = ?",
  );
  const keepLastId = database.query(
    `INSERT INTO gardens (garden, last_id) VALUES (?, ?)
       ON CONFLICT DO UPDATE SET last_id = excluded.last_id`,
  );
  const findKey = database.query<{ request: string; plant_id: bigint }, [string, string, number]>(
    `SELECT request, plant_id FROM idempotency_keys
       WHERE garden = ? AND key = ? AND expires_at_ms > ?`,
  );
  const keepKey = database.query(
    `INSERT INTO idempotency_keys (garden, key, request, plant_id, expires_at_ms)
       VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET request = excluded.request, plant_id = excluded.plant_id,
         expires_at_ms = excluded.expires_at_ms`,
  );
  const forgetKeys = database.query(
    `DELETE FROM idempotency_keys WHERE (garden, key) IN (SELECT garden, key FROM idempotency_keys
       WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${forgottenKeysMax})`,
  );
  const noteUse = database.query(
    `UPDATE tokens SET last_used_at_ms = max(coalesce(last_used_at_ms, 0), ?) WHERE id = ?`,
  );

  function transact<Result>(work: () => Result): Result {
    begin.run();
    let isWritten = false;
    try {
      const result = work();
      isWritten = true;
      commit.run();
      return result;
    } catch (error) {
      if (database.inTransaction) database.run("ROLLBACK");
      quota?.forget();
      throw isWritten ? mapCommitError(error) : error;
    }
  }

  /** The counters of the gardens that a group touches are read once and written once. */
  class Counters {
    readonly #counters = new Map<string, { lastId: bigint; storedId: bigint }>();

    /** Absent if what is stored is no id. */
    of(garden: string): { lastId: bigint } | undefined {
      let counter = this.#counters.get(garden);
      if (counter === undefined) {
        const { last_id: storedId } = findLastId.get(garden) ?? { last_id: 0n };
        if (!isId(storedId)) return undefined;
        counter = { lastId: storedId, storedId };
        this.#counters.set(garden, counter);
      }
      return counter;
    }

    keep(): void {
      for (const [garden, { lastId, storedId }] of this.#counters) {
        if (lastId !== storedId) keepLastId.run(garden, lastId);
      }
    }
  }

  function insertWithGivenId(write: CreateWrite, id: bigint, counters: Counters): Outcome {
    const counter = counters.of(write.garden);
    if (counter === undefined) return { kind: "damaged" };
    const { changes } = insertPlant.run(write.garden, id, write.name, write.tag);
    if (changes === 0) return { kind: "taken" };
    if (id > counter.lastId && id <= countedIdMax) counter.lastId = id;
    return { kind: "created", id, replayed: false };
  }

  function insertWithNextId(write: CreateWrite, counters: Counters): Outcome {
    const { garden, name, tag } = write;
    const counter = counters.of(garden);
    if (counter === undefined) return { kind: "damaged" };
    let id = counter.lastId + 1n;
    if (id > assignedIdMax) return { kind: "exhausted" };
    if (insertPlant.run(garden, id, name, tag).changes === 0) {
      id = findFreeId.get(garden, id, garden)?.id ?? id;
      if (id > assignedIdMax) return { kind: "exhausted" };
      if (insertPlant.run(garden, id, name, tag).changes === 0) return { kind: "damaged" };
    }
    counter.lastId = id;
    return { kind: "created", id, replayed: false };
  }

  function create(write: CreateWrite, counters: Counters): Outcome {
    const { garden, idempotency } = write;
    if (idempotency) {
      const known = findKey.get(garden, idempotency.key, idempotency.nowMs);
      if (known && known.request !== idempotency.request) return { kind: "mismatch" };
      if (known && !isId(known.plant_id)) return { kind: "damaged" };
      if (known) return { kind: "created", id: known.plant_id, replayed: true };
    }
    if (quota?.isFull(garden)) {
      const isTaken = write.id !== undefined && findPlant.get(garden, write.id) !== null;
      return isTaken ? { kind: "taken" } : { kind: "full", plantsMax: quota.plantsMax };
    }
    const outcome =
      write.id === undefined
        ? insertWithNextId(write, counters)
        : insertWithGivenId(write, write.id, counters);
    if (outcome.kind !== "created") return outcome;
    quota?.count(garden, 1);
    if (idempotency) {
      const { key, request, expiresAtMs } = idempotency;
      keepKey.run(garden, key, request, outcome.id, expiresAtMs);
    }
    return outcome;
  }

  function remove({ garden, id }: DeleteWrite): Outcome {
    if (deletePlant.run(garden, id).changes === 0) return { kind: "missing" };
    quota?.count(garden, -1);
    return { kind: "deleted" };
  }

  return {
    apply(writes) {
      return transact(() => {
        const counters = new Counters();
        const outcomes = writes.map((write) =>
          write.kind === "create" ? create(write, counters) : remove(write),
        );
        counters.keep();
        return outcomes;
      });
    },

    forgetKeys(nowMs) {
      return transact(() => forgetKeys.run(nowMs).changes === forgottenKeysMax);
    },

    noteTokenUses(uses) {
      transact(() => {
        for (const { id, usedAtMs } of uses) noteUse.run(usedAtMs, id);
      });
    },
  };
}

/**
 * From a damaged file it may be anything. It is looked at before the commit: behind it, on the way
 * to the caller, it would be too late to say that nothing was changed.
 */
function isId(id: unknown): id is bigint {
  return typeof id === "bigint";
}
