/**
 * Applies a group of writes to PostgreSQL, in one of two ways. Every write to a garden locks its
 * row first, so instances take turns.
 *
 * | group                                         | statements              | decided by        |
 * |-----------------------------------------------|-------------------------|-------------------|
 * | creates without ids, none of a bulk with keys | one (`createStatement`) | the statement     |
 * | any other, and what the statement refused     | two round trips (batch) | `domain/rules.ts` |
 *
 * `createStatement` states the rules for plain creates a second time, in SQL: next id, quota, new
 * keys, events. That's 2.7 times as fast as a batch. If a key was used, no id is left, or a garden
 * has no room, a constraint refuses the whole statement, and the batch decides.
 * `test/storage/writes.test.ts` compares both with a model, so change them together.
 *
 * Of a group with several gardens, the batch passes over those that another process holds. The
 * statement can't: its INSERT waits. So it waits for a moment only, then leaves it to the batch.
 */
import { toBytes } from "../../domain/keys.ts";
import { contentFields, type PlantId } from "../../domain/plant.ts";
import type { CreateWrite, Outcome, PlantStorage, Write } from "../../domain/ports.ts";
import { historyMaxOf } from "../../domain/rules.ts";
import {
  type ForgottenEvents,
  forgetEvents,
  forgetEventsStatement,
  forgottenMax,
  oldestEventsStatement,
} from "../event-cleanup.ts";
import { storageError } from "../failures.ts";
import { contentColumns } from "../rows.ts";
import type { WriterOptions } from "../storage.ts";
import { applyBatch, columns, contentArrays, sortedGardens } from "./batch.ts";
import { hasState } from "./errors.ts";
import type { TransactionRunner } from "./transaction.ts";

const lockNotAvailable = "55P03";
/** How long the statement waits for a garden that shares it with others. */
const statementWaitMs = 50;
/** How long one try waits for a garden of its own, so that other gardens get the connection. */
const ownWaitMs = 1_000;
/** The same if there is only one connection. */
const onlyWaitMs = 100;
/** Of the time that a request may take, what is left for the commit after the garden was held. */
const commitMs = 4_000;
/** A key that is already there, no id left to assign, a garden without room. */
const creationFailures = ["23505", "23514", "23502"];

export function createWriter(
  runner: TransactionRunner,
  options: WriterOptions,
): Pick<PlantStorage, "apply" | "shared" | "forgetKeys" | "forgetEvents"> {
  const withEvents = !options.withoutEvents;
  const statements = {
    withoutKeys: createStatement({ withEvents, withKeys: false }),
    withKeys: createStatement({ withEvents, withKeys: true }),
  };
  // A wait ends before its statement does.
  const waitMsMax = runner.statementTimeoutMs / 2;
  const tryMsMax = Math.min(waitMsMax, runner.hasOneConnection ? onlyWaitMs : ownWaitMs);

  /**
   * Without `waitMs`, it passes over gardens that another process holds. If one statement isn't
   * enough, both ways together still end in time.
   */
  async function applyInTime(
    writes: readonly Write[],
    dueAtMs: number,
    waitMs?: number,
  ): Promise<readonly (Outcome | undefined)[]> {
    if (isAllPlain(writes)) {
      const created = await createAll(runner, writes, {
        statements,
        plantsMax: options.plantsMax,
        waitMs: waitMs ?? statementWaitMs,
        dueAtMs,
      }).catch((error) => {
        const isForBatch = hasState(error, ...creationFailures) || (!waitMs && isLocked(error));
        if (!isForBatch) throw error;
      });
      if (created) return created;
    }
    const waiting = { passesOver: waitMs === undefined, waitMs: waitMs ?? statementWaitMs };
    return runner.run(
      (client, announceCommit) =>
        applyBatch(client, writes, { ...options, ...waiting, announceCommit }),
      { dueAtMs },
    );
  }

  /** Without outcomes if a garden is still held after that time: nothing was applied. */
  async function applyUnlessHeld(writes: readonly Write[], dueAtMs: number, waitMs?: number) {
    try {
      const wholeMs = waitMs === undefined ? undefined : Math.max(1, Math.round(waitMs));
      return await applyInTime(writes, dueAtMs, wholeMs);
    } catch (error) {
      if (!isLocked(error)) throw error;
      return writes.map(() => undefined);
    }
  }

  return {
    async apply(writes) {
      const dueAtMs = runner.dueAtMs();
      while (performance.now() + waitMsMax < dueAtMs) {
        const outcomes = await applyUnlessHeld(writes, dueAtMs, waitMsMax);
        if (outcomes.every((outcome) => outcome !== undefined)) return outcomes;
      }
      throw storageError("unavailable", "Another process holds a garden.");
    },

    shared: {
      waitsMax: runner.waitsMax,
      apply(writes, untilMs) {
        const dueAtMs = runner.dueAtMs();
        if (untilMs === undefined) return applyUnlessHeld(writes, dueAtMs);
        const waitMs = Math.min(tryMsMax, untilMs - performance.now());
        return applyUnlessHeld(writes, Math.min(dueAtMs, untilMs + commitMs), waitMs);
      },
    },

    async forgetKeys(nowMs) {
      const { rows } = await runner.write(forgetKeysStatement, [nowMs]);
      return Number(rows[0]?.count) === forgottenMax;
    },

    forgetEvents(beforeMs, after) {
      const steps = {
        find: async (from: string) => (await runner.query(oldestEventsStatement, [from])).rows,
        forget: async (...values: ForgottenEvents) =>
          (await runner.write(forgetEventsStatement, values)).rowCount ?? 0,
      };
      return forgetEvents(steps, options.plantsMax, beforeMs, after);
    },
  };
}

/**
 * Locks gardens before keys, like every write, so that nobody uses a key again in between. Skips
 * gardens that somebody else holds: their keys have time.
 */
const forgetKeysStatement = `
  WITH expired AS (
    SELECT garden, ctid AS place FROM idempotency_keys
      WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT ${forgottenMax}),
  locked AS (
    SELECT free.garden FROM (SELECT DISTINCT garden FROM expired ORDER BY garden) AS named
      CROSS JOIN LATERAL (
        SELECT garden FROM gardens WHERE gardens.garden = named.garden
          FOR UPDATE SKIP LOCKED) AS free),
  forgotten AS (
    DELETE FROM idempotency_keys
      WHERE expires_at_ms <= $1
        AND ctid = ANY (ARRAY (SELECT place FROM expired JOIN locked USING (garden)))
      RETURNING garden),
  counted AS (
    INSERT INTO gardens (garden, keys) SELECT garden, -count(*) FROM forgotten GROUP BY garden
      ON CONFLICT (garden) DO UPDATE SET keys = gardens.keys + excluded.keys)
  SELECT count(*) FROM forgotten`;

/**
 * A create without a chosen id, whose key, if any, can be inserted without reading it first. Plants
 * of a bulk share a row of keys, which must be read before it's changed.
 */
function isAllPlain(writes: readonly Write[]): writes is CreateWrite[] {
  return writes.every(
    (write) => write.kind === "create" && write.id === undefined && !write.key?.isInBulk,
  );
}

/** The runner has mapped it to `unavailable`, so the server's error is the cause. */
function isLocked(error: unknown): boolean {
  return hasState((error as Error).cause, lockNotAvailable);
}

/** Moves each garden's counters by its number of plants; the plants get the ids up to there. */
async function createAll(
  runner: TransactionRunner,
  writes: readonly CreateWrite[],
  options: {
    readonly statements: Readonly<Record<"withKeys" | "withoutKeys", string>>;
    readonly plantsMax: number | undefined;
    readonly waitMs: number;
    readonly dueAtMs: number;
  },
): Promise<Outcome[]> {
  const { statements, plantsMax, waitMs, dueAtMs } = options;
  const { gardens, plants } = toRows(writes);
  const withKeys = writes.some(({ key }) => key);
  const keyNames = withKeys ? (["rowKey", "requestHash", "expiresAtMs"] as const) : [];
  const statement = withKeys ? statements.withKeys : statements.withoutKeys;
  const values = [
    ...columns(gardens, "garden", "plants", "keys"),
    plantsMax ?? unlimited,
    plantsMax === undefined ? unlimited : historyMaxOf(plantsMax),
    String(waitMs),
    ...columns(plants, "garden", "atMs", "user", "fromLast", ...contentFields, ...keyNames),
  ];
  const { rows } = await runner.write(statement, values, { dueAtMs });
  const lastIds = new Map<string, PlantId>(rows.map(({ garden, last_id }) => [garden, last_id]));
  return plants.map(({ garden, fromLast }) => {
    const id = (lastIds.get(garden) as PlantId) - BigInt(fromLast);
    return { kind: "created", id, replayed: false };
  });
}

/**
 * The rows of `createStatement`: what each garden gains, and the plants with their keys. If a
 * garden gains two plants, the first has `fromLast: 1` and gets the id `last_id - 1`, the second
 * has `fromLast: 0`.
 */
function toRows(writes: readonly CreateWrite[]) {
  const gardens = new Map(
    sortedGardens(writes).map(({ garden }) => [garden, { garden, plants: 0, keys: 0 }]),
  );
  const plants = writes.toReversed().map((write) => {
    const { garden, key } = write;
    const gained = gardens.get(garden) as { plants: number; keys: number };
    if (key) gained.keys++;
    return {
      ...write,
      fromLast: gained.plants++,
      rowKey: key && toBytes(key.rowKey),
      requestHash: key && toBytes(key.requestHash),
      expiresAtMs: key?.expiresAtMs,
    };
  });
  return { gardens: [...gardens.values()], plants: plants.reverse() };
}

/** The highest `bigint`. */
const unlimited = 2n ** 63n - 1n;

/**
 * Part of the `FROM` of the rows to lock, so that it's set before the first wait for a lock. It
 * ends with the statement.
 */
const lockTimeout = "(SELECT set_config('lock_timeout', $6, true)) AS lock_timeout";

/**
 * A garden without room is not counted. Its plants then get a null id, and NOT NULL refuses the
 * statement.
 */
const createStatement = ({ withEvents, withKeys }: Record<"withEvents" | "withKeys", boolean>) => `
  WITH counted AS (
    INSERT INTO gardens (garden, last_id, plants, keys, last_event)
      SELECT garden, plants, plants, keys, plants
        FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS added (garden, plants, keys)
        CROSS JOIN ${lockTimeout} WHERE plants <= $4 AND keys <= $5
      ON CONFLICT (garden) DO UPDATE SET last_id = gardens.last_id + excluded.plants,
          plants = gardens.plants + excluded.plants, keys = gardens.keys + excluded.keys,
          last_event = gardens.last_event + excluded.plants
        WHERE gardens.plants + excluded.plants <= $4 AND gardens.keys + excluded.keys <= $5
      RETURNING garden, last_id, last_event),
  plant AS (
    SELECT *, last_id - from_last AS id, last_event - from_last AS seq
      FROM unnest($7::text[], $8::bigint[], $9::text[], $10::bigint[], ${contentArrays(11)}
          ${withKeys ? keyArrays : ""})
        AS sent (garden, at_ms, author, from_last, ${contentColumns} ${withKeys ? keyColumns : ""})
      LEFT JOIN counted USING (garden)),
  stored_plants AS (
    INSERT INTO plants (garden, id, ${contentColumns})
      SELECT garden, id, ${contentColumns} FROM plant)
  ${withEvents ? storeEvents : ""} ${withKeys ? storeKeys : ""}
  SELECT garden, last_id FROM counted`;

const storeEvents = `, stored_events AS (
    INSERT INTO events (garden, seq, at_ms, type, "user", id, ${contentColumns})
      SELECT garden, seq, at_ms, 'created', author, id, ${contentColumns} FROM plant)`;

const keyColumns = ", key, request, expires_at_ms";
const firstKey = 11 + contentFields.length;
const keyArrays = `, $${firstKey}::bytea[], $${firstKey + 1}::bytea[], $${firstKey + 2}::bigint[]`;

const storeKeys = `, stored_keys AS (
    INSERT INTO idempotency_keys (garden, key, entries, expires_at_ms)
      SELECT garden, key, request || int8send(id), expires_at_ms FROM plant WHERE key IS NOT NULL)`;
