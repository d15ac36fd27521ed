/**
 * Creates without chosen ids, for any number of gardens, in one statement: 2.7 times as fast as the
 * transaction of `group-transaction.ts`. It moves each garden's counters by its number of plants; the plants get the ids up to
 * there.
 *
 * So it states the rules a second time, in SQL: next id, quota, new keys, events. If a key was used,
 * no id is left, or a garden has no room, a constraint refuses the whole statement, and the
 * transaction decides. `test/storage/writes.test.ts` compares both with a model, so change them together.
 */
import { toBytes } from "../../domain/idempotency.ts";
import { contentFields, type PlantId } from "../../domain/plant.ts";
import type { CreateWrite, Outcome, Write } from "../../domain/ports.ts";
import { historyMaxOf } from "../../domain/rules.ts";
import { contentColumns } from "../rows.ts";
import type { WriterOptions } from "../storage.ts";
import { hasState } from "./errors.ts";
import { columns, contentArrays, sortedGardens } from "./group-transaction.ts";
import type { TransactionRunner } from "./transaction.ts";

/**
 * A create without a chosen id, whose key, if any, can be inserted without reading it first. Plants
 * of a bulk share a row of keys, which must be read before it's changed.
 */
export function arePlain(writes: readonly Write[]): writes is CreateWrite[] {
  return writes.every(
    (write) => write.kind === "create" && write.id === undefined && !write.key?.isInBulk,
  );
}

/** A key that is already there, no id left to assign, a garden without room. */
export function isRefusal(error: unknown): boolean {
  return hasState(error, "23505", "23514", "23502");
}

/** How long it may wait for a garden, and when it must have ended. */
interface InTime {
  readonly lockTimeoutMs: number;
  readonly dueAtMs: number;
}

/** The creates of one storage. Their statements never change. */
export function preparePlainCreates(
  runner: TransactionRunner,
  { plantsMax, withoutEvents }: WriterOptions,
): (writes: readonly CreateWrite[], inTime: InTime) => Promise<Outcome[]> {
  const withEvents = !withoutEvents;
  const plainStatement = insertStatement({ withEvents, withKeys: false });
  const keyedStatement = insertStatement({ withEvents, withKeys: true });

  return async (writes, { lockTimeoutMs, dueAtMs }) => {
    const { gardens, plants } = toRows(writes);
    const withKeys = writes.some(({ key }) => key);
    const keyNames = withKeys ? (["rowKey", "requestHash", "expiresAtMs"] as const) : [];
    const values = [
      ...columns(gardens, "garden", "plants", "keys"),
      plantsMax ?? unlimited,
      plantsMax === undefined ? unlimited : historyMaxOf(plantsMax),
      String(lockTimeoutMs),
      ...columns(plants, "garden", "atMs", "user", "fromLast", ...contentFields, ...keyNames),
    ];
    const statement = withKeys ? keyedStatement : plainStatement;
    const { rows } = await runner.write(statement, values, { dueAtMs });
    const lastIds = new Map<string, PlantId>(rows.map(({ garden, last_id }) => [garden, last_id]));
    return plants.map(({ garden, fromLast }) => {
      const id = (lastIds.get(garden) as PlantId) - BigInt(fromLast);
      return { kind: "created", id, replayed: false };
    });
  };
}

/**
 * The rows of `insertStatement`: what each garden gains, and the plants with their keys. If a
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
const insertStatement = ({ withEvents, withKeys }: Record<"withEvents" | "withKeys", boolean>) => `
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
