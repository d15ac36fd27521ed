/**
 * Applies any group of writes in one transaction of two round trips. `writer.ts` says which groups
 * come here.
 *
 * | round trip                                                       | function   |
 * |------------------------------------------------------------------|------------|
 * | begin, lock the gardens, fetch all that the rules may look up    | `fetchAll` |
 * | store what `domain/rules.ts` decided, and commit                 | `store`    |
 */
import type { QueryResult } from "pg";
import { toBytes } from "../../domain/idempotency.ts";
import { contentFields, type Plant, type PlantId } from "../../domain/plant.ts";
import type { Outcome, Write } from "../../domain/ports.ts";
import { decide, type GardenChanges, type LookUp } from "../../domain/rules.ts";
import { contentColumns, toGardenRow, toStoredKey } from "../rows.ts";
import type { WriterOptions } from "../storage.ts";
import { beginWrite, type Connection } from "./connection.ts";

/** What to do about gardens that another process holds. */
export type IfHeld = "pass over" | "wait";

interface TransactionOptions extends WriterOptions {
  readonly ifHeld: IfHeld;
  /**
   * How long to wait for a garden. Even the one that passes over held ones may have to: a garden
   * that another process is adding has no row to skip yet.
   */
  readonly lockTimeoutMs: number;
  /** Called before sending anything that could commit: a connection lost later may have done so. */
  readonly announceCommit: () => void;
}

/** The outcome is undefined for the writes of gardens that it has passed over. */
export async function applyInTransaction(
  client: Connection,
  writes: readonly Write[],
  { plantsMax, withoutEvents, ifHeld, lockTimeoutMs, announceCommit }: TransactionOptions,
): Promise<readonly (Outcome | undefined)[]> {
  try {
    const { unlocked, lookUp } = await fetchAll(client, writes, ifHeld, lockTimeoutMs);
    const hasLock = ({ garden }: Write) => !unlocked.has(garden);
    const applicable = unlocked.size === 0 ? writes : writes.filter(hasLock);
    if (applicable.length === 0 || (unlocked.size > 0 && ifHeld === "wait")) {
      await client.query("ROLLBACK");
      return writes.map(() => undefined);
    }
    const { outcomes, changes } = decide(applicable, lookUp, plantsMax);
    announceCommit();
    await store(client, changes, withoutEvents);
    let next = 0;
    return writes.map((write) => (hasLock(write) ? outcomes[next++] : undefined));
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

interface Fetched {
  /**
   * Gardens that another process holds. If those are passed over, a garden without a row may be one
   * of them, so it counts: its lane waits and finds out.
   */
  readonly unlocked: ReadonlySet<string>;
  readonly lookUp: LookUp;
}

/**
 * One round trip. If BEGIN fails, the statements sent after it still run, each on its own: at
 * worst, they add an empty garden.
 */
async function fetchAll(
  client: Connection,
  writes: readonly Write[],
  ifHeld: IfHeld,
  lockTimeoutMs: number,
): Promise<Fetched> {
  const gardens = sortedGardens(writes);
  const adding = sortedGardens(writes.filter(({ kind }) => kind === "create" || kind === "put"));
  const named = writes.flatMap(({ garden, id }) => (id === undefined ? [] : [{ garden, id }]));
  // Plants of a bulk share rows of keys.
  const keys = new Map<string, { readonly garden: string; readonly key: Buffer }>();
  for (const write of writes) {
    if (write.kind !== "create" || !write.key) continue;
    const { garden, key } = write;
    const name = pair(garden, key.rowKey);
    if (!keys.has(name)) keys.set(name, { garden, key: toBytes(key.rowKey) });
  }
  const [, , gardenRows, plantRows, keyRows] = await inOneRoundTrip([
    client.query(`${beginWrite}; SET LOCAL lock_timeout = ${lockTimeoutMs}`),
    // There must be a row to lock.
    queryFor(client, addGardensStatement, adding, "garden"),
    queryFor(client, ifHeld === "wait" ? lockGardens : lockFreeGardens, gardens, "garden"),
    queryFor(client, findPlantsStatement, named, "garden", "id"),
    queryFor(client, findKeysStatement, [...keys.values()], "garden", "key"),
  ] as const);
  const found = {
    gardens: new Map(gardenRows.rows.map((row) => [row.garden as string, toGardenRow(row)])),
    plants: new Map(plantRows.rows.map((row) => [pair(row.garden, row.id), row as Plant])),
    keys: new Map(
      keyRows.rows.map((row) => [pair(row.garden, row.key.toString("latin1")), toStoredKey(row)]),
    ),
  };
  // If it has waited, a missing garden doesn't exist, or was deleted just before it was locked.
  const needed = ifHeld === "wait" ? adding : gardens;
  const missing = needed.filter(({ garden }) => !found.gardens.has(garden));
  return {
    unlocked: new Set(missing.map(({ garden }) => garden)),
    lookUp: {
      garden: (garden) => found.gardens.get(garden),
      plant: (garden, id) => found.plants.get(pair(garden, id)),
      key: (garden, rowKey) => found.keys.get(pair(garden, rowKey)),
    },
  };
}

/** Everyone takes locks in the same order, which prevents deadlocks. */
export function sortedGardens(writes: readonly Write[]): { readonly garden: string }[] {
  const names = new Set(writes.map(({ garden }) => garden));
  return [...names].sort().map((garden) => ({ garden }));
}

/** One string for a garden and an id or key in it. Garden names can't contain the separator. */
function pair(garden: string, rest: string | PlantId): string {
  return `${garden}\0${rest}`;
}

const addGardensStatement = `
  INSERT INTO gardens (garden) SELECT garden FROM unnest($1::text[]) AS added (garden)
    ON CONFLICT (garden) DO NOTHING`;

const lockStatement = (orSkip: "" | "SKIP LOCKED") => `
  SELECT locked.* FROM unnest($1::text[]) WITH ORDINALITY AS named (garden, position)
    CROSS JOIN LATERAL (
      SELECT garden, last_id, plants, keys, last_event FROM gardens
        WHERE gardens.garden = named.garden FOR UPDATE ${orSkip}) AS locked
    ORDER BY position`;

const lockGardens = lockStatement("");
const lockFreeGardens = lockStatement("SKIP LOCKED");

/**
 * A plant by its id, as a range in the order of the primary key: for an equal id, PostgreSQL 15
 * chooses plants_by_tag while the table is empty, and later reads a whole garden.
 */
const isNamed = (named: string) => `plants.garden = ${named}.garden
          AND plants.id BETWEEN ${named}.id AND ${named}.id ORDER BY plants.id LIMIT 1`;

const findPlantsStatement = `
  SELECT found.* FROM unnest($1::text[], $2::bigint[]) AS named (garden, id)
    CROSS JOIN LATERAL (
      SELECT garden, id, ${contentColumns} FROM plants WHERE ${isNamed("named")}) AS found`;

const findKeysStatement = `
  SELECT found.* FROM unnest($1::text[], $2::bytea[]) AS sent (garden, key)
    CROSS JOIN LATERAL (
      SELECT garden, key, entries, expires_at_ms FROM idempotency_keys AS stored
        WHERE stored.garden = sent.garden AND stored.key = sent.key LIMIT 1) AS found`;

/** One round trip. A COMMIT after a failed statement is answered as ROLLBACK, without an error. */
async function store(
  client: Connection,
  changes: readonly GardenChanges[],
  withoutEvents = false,
): Promise<void> {
  const of = <Item extends object>(items: (changes: GardenChanges) => readonly Item[]) =>
    changes.flatMap((each) => items(each).map((item) => ({ ...item, garden: each.garden })));
  const inserted = of((each) => each.inserted);
  const replaced = of((each) => each.replaced);
  const deleted = of((each) => each.deleted.map((id) => ({ id })));
  const keys = of((each) =>
    each.keyRows.map(({ rowKey, entries, expiresAtMs }) => ({
      key: toBytes(rowKey),
      entries,
      expiresAtMs,
    })),
  );
  const events = withoutEvents
    ? []
    : of((each) => each.events.map(({ plant, ...event }) => ({ ...event, ...plant })));
  const plantNames = ["garden", "id", ...contentFields] as const;
  const eventNames = ["seq", "atMs", "type", "user", "id", ...contentFields] as const;
  const counterNames = ["lastId", "plants", "keys", "lastEvent"] as const;
  const results = await inOneRoundTrip([
    queryFor(client, insertPlantsStatement, inserted, ...plantNames),
    queryFor(client, replacePlantsStatement, replaced, ...plantNames),
    queryFor(client, deletePlantsStatement, deleted, "garden", "id"),
    queryFor(client, updateGardensStatement, changes, "garden", ...counterNames),
    queryFor(client, storeEventsStatement, events, "garden", ...eventNames),
    queryFor(client, storeKeysStatement, keys, "garden", "key", "entries", "expiresAtMs"),
    client.query("COMMIT"),
  ]);
  const command = results.at(-1)?.command;
  if (command !== "COMMIT") throw new Error(`A commit was answered as ${command}.`);
}

/** The parameters of `unnest` for a plant's content, from this number on. */
export function contentArrays(first: number): string {
  return contentFields.map((_, index) => `$${first + index}::text[]`).join(", ");
}

const insertPlantsStatement = `
  INSERT INTO plants (garden, id, ${contentColumns})
    SELECT * FROM unnest($1::text[], $2::bigint[], ${contentArrays(3)})`;

/** Where a plant's row is. The garden is locked, so it stays there. */
const rowOf = (named: string) => `LATERAL (SELECT ctid FROM plants WHERE ${isNamed(named)}) AS row`;

const replacePlantsStatement = `
  UPDATE plants SET ${contentFields.map((field) => `${field} = put.${field}`).join(", ")}
    FROM unnest($1::text[], $2::bigint[], ${contentArrays(3)}) AS put (garden, id, ${contentColumns})
      CROSS JOIN ${rowOf("put")}
    WHERE plants.ctid = row.ctid`;

const deletePlantsStatement = `
  DELETE FROM plants WHERE ctid = ANY (ARRAY (
    SELECT row.ctid FROM unnest($1::text[], $2::bigint[]) AS gone (garden, id)
      CROSS JOIN ${rowOf("gone")}))`;

/** Every garden has a row by now. */
const updateGardensStatement = `
  INSERT INTO gardens (garden, last_id, plants, keys, last_event)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
    ON CONFLICT (garden) DO UPDATE SET last_id = excluded.last_id, plants = excluded.plants,
      keys = excluded.keys, last_event = excluded.last_event`;

const storeEventsStatement = `
  INSERT INTO events (garden, seq, at_ms, type, "user", id, ${contentColumns})
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[],
      $6::bigint[], ${contentArrays(7)})`;

const storeKeysStatement = `
  INSERT INTO idempotency_keys (garden, key, entries, expires_at_ms)
    SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::bigint[])
    ON CONFLICT (garden, key) DO UPDATE
      SET entries = excluded.entries, expires_at_ms = excluded.expires_at_ms`;

/** Turns items into one array per field: the parameters of `unnest`. */
export function columns<Item, Name extends keyof Item>(
  items: readonly Item[],
  ...names: readonly Name[]
): Item[Name][][] {
  return names.map((name) => items.map((item) => item[name]));
}

type Rows = Pick<QueryResult, "rows" | "command">;

/** Runs a statement over a list of items, with one array per field, unless the list is empty. */
async function queryFor<Item, Name extends keyof Item>(
  client: Connection,
  text: string,
  items: readonly Item[],
  ...names: readonly Name[]
): Promise<Rows> {
  if (items.length === 0) return { rows: [], command: "" };
  return client.send(text, columns(items, ...names));
}

/** Waits for all, so that the connection is idle afterwards. Fails with the first failure. */
async function inOneRoundTrip<Queries extends readonly Promise<unknown>[]>(queries: Queries) {
  await Promise.allSettled(queries);
  return Promise.all(queries);
}
