/**
 * Applies any group of writes in one transaction of two round trips: what its outcomes depend on is
 * locked and read in one go, and what was decided is stored in another.
 */
import { type ClientBase, DatabaseError, type QueryResult } from "pg";
import { assignedIdMax, type PlantId } from "../../domain/plant.ts";
import type { Outcome, Write } from "../../domain/storage.ts";
import { type Decision, decide, type KeptKey } from "./decision.ts";
import { isLost } from "./failure.ts";
import { Quota } from "./quota.ts";

export interface PlantPlace {
  readonly garden: string;
  readonly id: PlantId;
}

/** Calls `commit` before it sends what is to last. */
export async function applyInOrder(
  client: ClientBase,
  writes: readonly Write[],
  commit: () => void,
  { plantsMax, isUncounted }: { readonly plantsMax: number | undefined; isUncounted: boolean },
): Promise<readonly Outcome[]> {
  const creates = writes.filter((write) => write.kind === "create");
  const wanted = Map.groupBy(creates, ({ garden }) => garden);
  const gardens = sorted(wanted.keys());
  // Who has no quota to keep does not count, and leaves it to whoever has.
  const added = gardens.map((garden) => plantsMax && wanted.get(garden)?.length);
  const chosen = writes.flatMap(({ kind, garden, id }) =>
    kind === "create" && id !== undefined ? [{ garden, id }] : [],
  );
  const keyed = creates.flatMap(({ garden, idempotency }) =>
    idempotency ? [{ garden, key: idempotency.key }] : [],
  );
  const doomed = writes.filter((write) => write.kind === "delete");
  try {
    const [, counters, gone, existing, keys] = await inOneGo([
      begin(client, commit),
      client.query(lock, [gardens, added]),
      queryFor(client, doomed, deletion, placesOf(doomed)),
      queryFor(client, chosen, lookUp, placesOf(chosen)),
      queryFor(client, keyed, lookUpKeys, [
        keyed.map(({ garden }) => garden),
        keyed.map(({ key }) => key),
      ]),
    ]);
    const quota =
      plantsMax === undefined
        ? undefined
        : await Quota.read(client, plantsMax, wanted, counters?.rows ?? [], gone?.rows ?? []);
    const decision = await decide(writes, {
      lastIds: new Map(counters?.rows.map(({ garden, last_id }) => [garden, last_id])),
      quota,
      isUncounted,
      plants: [...(gone?.rows ?? []), ...(existing?.rows ?? [])],
      keys: keys?.rows.map(toKey) ?? [],
      findFreeId: (garden, from) => findFreeId(client, garden, from),
    });
    commit();
    await store(client, decision, quota?.bounds());
    return decision.outcomes;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

/**
 * If the server refuses it and stays, as when somebody cancels just this, each statement behind it
 * is a transaction of its own, and has lasted.
 */
async function begin(client: ClientBase, commit: () => void): Promise<QueryResult> {
  try {
    return await client.query("BEGIN ISOLATION LEVEL READ COMMITTED");
  } catch (error) {
    if (!(error instanceof DatabaseError) || isLost(error)) throw error;
    commit();
    throw new Error("No transaction was begun.", { cause: error });
  }
}

const lock = `
  INSERT INTO gardens (garden, last_id, plants_bound)
    SELECT garden, 0, plants FROM unnest($1::text[], $2::bigint[]) AS wanted (garden, plants)
    ON CONFLICT (garden) DO UPDATE SET plants_bound = gardens.plants_bound + excluded.plants_bound
    RETURNING garden, last_id, plants_bound`;

export const deletion = `
  DELETE FROM plants WHERE (garden, id) IN
    (SELECT garden, id FROM unnest($1::text[], $2::bigint[]) AS doomed (garden, id))
    RETURNING garden, id`;

const lookUp = `
  SELECT garden, id FROM plants
    JOIN unnest($1::text[], $2::bigint[]) AS chosen (garden, id) USING (garden, id)`;

const lookUpKeys = `
  SELECT garden, key, request, plant_id, expires_at_ms FROM idempotency_keys
    JOIN unnest($1::text[], $2::text[]) AS sent (garden, key) USING (garden, key)`;

function toKey(row: Record<string, unknown>): KeptKey {
  const { garden, key, request } = row as { garden: string; key: string; request: string };
  return {
    garden,
    key,
    request,
    plantId: row.plant_id as PlantId,
    expiresAtMs: Number(row.expires_at_ms),
  };
}

async function findFreeId(client: ClientBase, garden: string, from: PlantId): Promise<PlantId> {
  const taken = await client.query(lookUp, placesOf([{ garden, id: from }]));
  if (taken.rows.length === 0) return from;
  const { rows } = await client.query(
    `SELECT id + 1 AS id FROM plants AS taken
       WHERE garden = $1 AND id >= $2 AND id <= $3 AND NOT EXISTS
         (SELECT 1 FROM plants WHERE garden = $1 AND id = taken.id + 1)
       ORDER BY taken.id LIMIT 1`,
    [garden, from, assignedIdMax],
  );
  // Deletions do not wait for the garden: what was in the way may be gone, with nothing behind.
  return rows[0]?.id ?? from;
}

/** A COMMIT after a failed statement is answered as ROLLBACK, without an error of its own. */
async function store(
  client: ClientBase,
  { plants, keys, lastIds }: Decision,
  bounds: ReadonlyMap<string, number | null> = new Map(),
): Promise<void> {
  const results = await inOneGo([
    queryFor(
      client,
      plants,
      `INSERT INTO plants (garden, id, name, tag)
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[])`,
      [
        plants.map(({ garden }) => garden),
        plants.map(({ id }) => id),
        plants.map(({ name }) => name),
        plants.map(({ tag }) => tag),
      ],
    ),
    queryFor(
      client,
      [...lastIds],
      `UPDATE gardens SET last_id = moved.last_id
         FROM unnest($1::text[], $2::bigint[]) AS moved (garden, last_id)
         WHERE gardens.garden = moved.garden`,
      [[...lastIds.keys()], [...lastIds.values()]],
    ),
    queryFor(
      client,
      [...bounds],
      `UPDATE gardens SET plants_bound = counted.plants
         FROM unnest($1::text[], $2::bigint[]) AS counted (garden, plants)
         WHERE gardens.garden = counted.garden`,
      [[...bounds.keys()], [...bounds.values()]],
    ),
    queryFor(
      client,
      keys,
      `INSERT INTO idempotency_keys (garden, key, request, plant_id, expires_at_ms)
         SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
         ON CONFLICT (garden, key) DO UPDATE SET request = excluded.request,
           plant_id = excluded.plant_id, expires_at_ms = excluded.expires_at_ms`,
      [
        keys.map(({ garden }) => garden),
        keys.map(({ key }) => key),
        keys.map(({ request }) => request),
        keys.map(({ plantId }) => plantId),
        keys.map(({ expiresAtMs }) => expiresAtMs),
      ],
    ),
    client.query("COMMIT"),
  ]);
  const command = results.at(-1)?.command;
  if (command !== "COMMIT") throw new Error(`A commit was answered as ${command}.`);
}

/** A statement over a batch, left out where the batch is empty. */
async function queryFor(
  client: ClientBase,
  batch: readonly unknown[],
  text: string,
  values: unknown[],
): Promise<Pick<QueryResult, "rows" | "command">> {
  return batch.length === 0 ? { rows: [], command: "" } : client.query(text, values);
}

/** Waits for all, so that the connection is at rest afterwards; fails with what failed first. */
async function inOneGo<Result>(queries: readonly Promise<Result>[]): Promise<Result[]> {
  const settled = await Promise.allSettled(queries);
  return settled.map((each) => {
    if (each.status === "rejected") throw each.reason;
    return each.value;
  });
}

export function placesOf(places: readonly PlantPlace[]): [gardens: string[], ids: PlantId[]] {
  return [places.map(({ garden }) => garden), places.map(({ id }) => id)];
}

/** Locks are taken in one order by all, so that nobody waits in a circle. */
export function sorted(gardens: Iterable<string>): string[] {
  return [...gardens].sort();
}
