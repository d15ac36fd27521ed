/**
 * Applies a group of writes to a SQLite connection in one durable transaction. Runs in the worker.
 */
import type { Database } from "bun:sqlite";
import { assignedIdMax } from "../../domain/plant.ts";
import {
  type CreateWrite,
  countedIdMax,
  type DeleteWrite,
  keysMaxOf,
  type Outcome,
  type PutWrite,
  type TokenUse,
  type Write,
} from "../../domain/storage.ts";
import { isKeyed, type KeyRow, KeyRows } from "../key-rows.ts";
import { mapCommitError } from "./errors.ts";
import { Quota } from "./quota.ts";

/** Few enough that writers who wait behind it do not notice. */
const forgottenKeysMax = 1_000;

export interface Writer {
  apply(writes: readonly Write[]): Outcome[];
  forgetKeys(nowMs: number): boolean;
  noteTokenUses(uses: readonly TokenUse[]): void;
}

interface StoredKey {
  readonly request_hash: Uint8Array;
  readonly plant_id: bigint;
  readonly lines: Uint8Array | null;
  readonly expires_at_ms: bigint;
}

export function createWriter(database: Database, plantsMax?: number): Writer {
  const isLimited = plantsMax !== undefined;
  const plantQuota = isLimited ? new Quota(database, "plants", plantsMax) : undefined;
  const keyQuota = isLimited
    ? new Quota(database, "idempotency_hashes", keysMaxOf(plantsMax))
    : undefined;
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
  const findKey = database.query<StoredKey, [string, Buffer]>(
    `SELECT request_hash, plant_id, lines, expires_at_ms FROM idempotency_hashes
       WHERE garden = ? AND key_hash = ?`,
  );
  const keepKey = database.query(
    `INSERT INTO idempotency_hashes
       (garden, key_hash, request_hash, plant_id, lines, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET request_hash = excluded.request_hash, lines = excluded.lines,
         plant_id = excluded.plant_id, expires_at_ms = excluded.expires_at_ms`,
  );
  const forgetKeys = database.query<{ garden: string }, [number]>(
    `DELETE FROM idempotency_hashes WHERE (garden, key_hash) IN (
       SELECT garden, key_hash FROM idempotency_hashes
         WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ${forgottenKeysMax})
       RETURNING garden`,
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
      plantQuota?.forget();
      keyQuota?.forget();
      throw isWritten ? mapCommitError(error) : error;
    }
  }

  /** The counters of the gardens that a group touches are read once and written once. */
  class Counters {
    readonly #counters = new Map<string, { lastId: bigint; storedId: bigint }>();

    of(garden: string): { lastId: bigint } {
      let counter = this.#counters.get(garden);
      if (counter === undefined) {
        const { last_id: storedId } = findLastId.get(garden) ?? { last_id: 0n };
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

  function loadKey(garden: string, keyHash: Buffer): KeyRow | undefined {
    const found = findKey.get(garden, keyHash);
    return found
      ? {
          garden,
          keyHash,
          requestHash: Buffer.from(found.request_hash),
          plantId: found.plant_id,
          lines: found.lines && Buffer.from(found.lines),
          expiresAtMs: Number(found.expires_at_ms),
        }
      : undefined;
  }

  function keepKeys(rows: readonly KeyRow[]): void {
    for (const { garden, keyHash, requestHash, plantId, lines, expiresAtMs } of rows) {
      keepKey.run(garden, keyHash, requestHash, plantId, lines, expiresAtMs);
    }
  }

  function insertWithGivenId(write: CreateWrite, id: bigint, counters: Counters): Outcome {
    const counter = counters.of(write.garden);
    const { changes } = insertPlant.run(write.garden, id, write.name, write.tag);
    if (changes === 0) return { kind: "taken" };
    if (id > counter.lastId && id <= countedIdMax) counter.lastId = id;
    return { kind: "created", id, replayed: false };
  }

  function insertWithNextId(write: CreateWrite, counters: Counters): Outcome {
    const { garden, name, tag } = write;
    const counter = counters.of(garden);
    let id = counter.lastId + 1n;
    if (id > assignedIdMax) return { kind: "exhausted" };
    if (insertPlant.run(garden, id, name, tag).changes === 0) {
      id = findFreeId.get(garden, id, garden)?.id ?? id;
      if (id > assignedIdMax) return { kind: "exhausted" };
      if (insertPlant.run(garden, id, name, tag).changes === 0) throw new Error("Not stored.");
    }
    counter.lastId = id;
    return { kind: "created", id, replayed: false };
  }

  function create(write: CreateWrite, counters: Counters, keys: KeyRows): Outcome {
    const { garden } = write;
    const keyed = isKeyed(write) ? write : undefined;
    const earlier = keyed && keys.recall(keyed);
    if (earlier) return earlier;
    const isNewKey = keyed !== undefined && keys.needsRow(keyed);
    const isTaken = () => write.id !== undefined && findPlant.get(garden, write.id) !== null;
    if (plantQuota?.isFull(garden)) {
      return isTaken() ? { kind: "taken" } : { kind: "full", limit: "plants", max: plantQuota.max };
    }
    if (isNewKey && keyQuota?.isFull(garden)) {
      return isTaken() ? { kind: "taken" } : { kind: "full", limit: "keys", max: keyQuota.max };
    }
    const outcome =
      write.id === undefined
        ? insertWithNextId(write, counters)
        : insertWithGivenId(write, write.id, counters);
    if (outcome.kind !== "created") return outcome;
    plantQuota?.count(garden, 1);
    if (isNewKey) keyQuota?.count(garden, 1);
    if (keyed) keys.remember(keyed, outcome.id);
    return outcome;
  }

  function remove({ kind, garden, id }: DeleteWrite | PutWrite): Outcome {
    if (kind === "put") throw new Error("Not implemented.");
    if (deletePlant.run(garden, id).changes === 0) return { kind: "missing" };
    plantQuota?.count(garden, -1);
    return { kind: "deleted" };
  }

  return {
    apply(writes) {
      return transact(() => {
        const counters = new Counters();
        const keys = new KeyRows(loadKey);
        const outcomes = writes.map((write) =>
          write.kind === "create" ? create(write, counters, keys) : remove(write),
        );
        counters.keep();
        keepKeys(keys.changed());
        return outcomes;
      });
    },

    forgetKeys(nowMs) {
      return transact(() => {
        const forgotten = forgetKeys.all(nowMs);
        for (const { garden } of forgotten) keyQuota?.count(garden, -1);
        return forgotten.length === forgottenKeysMax;
      });
    },

    noteTokenUses(uses) {
      transact(() => {
        for (const { id, usedAtMs } of uses) noteUse.run(usedAtMs, id);
      });
    },
  };
}
