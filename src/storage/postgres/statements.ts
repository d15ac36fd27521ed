/** The statements of a batch, each over any number of gardens, and what their rows mean. */
import type { ClientBase, QueryResult } from "pg";
import { assignedIdMax, type PlantId } from "../../domain/plant.ts";
import { countedIdMax } from "../../domain/storage.ts";
import { type Gap, type GardenLimits, hashOf, type StoredKey } from "./decide.ts";

export type Rows = Pick<QueryResult, "rows" | "command">;

/** A statement over a list of items, left out where there are none. */
export async function queryFor(
  client: ClientBase,
  items: readonly unknown[],
  text: string,
  values: unknown[],
): Promise<Rows> {
  return items.length === 0 ? { rows: [], command: "" } : client.query(text, values);
}

export const lock = `
  INSERT INTO gardens (garden, last_id) SELECT garden, 0 FROM unnest($1::text[]) AS wanted (garden)
    ON CONFLICT (garden) DO UPDATE SET last_id = gardens.last_id
    RETURNING garden, last_id, plants_bound, keys_bound`;

export const deletion = `
  DELETE FROM plants WHERE (garden, id) IN
    (SELECT garden, id FROM unnest($1::text[], $2::bigint[]) AS deleted (garden, id))
    RETURNING garden, id`;

/** Also counts down the gardens, whose rows are locked in the order given. */
export const countedDeletion = `
  WITH locked AS (
    SELECT garden FROM unnest($3::text[]) WITH ORDINALITY AS wanted (garden, position)
      JOIN gardens USING (garden) ORDER BY position FOR UPDATE OF gardens),
  deleted AS (
    DELETE FROM plants WHERE (SELECT count(*) FROM locked) >= 0 AND (garden, id) IN
      (SELECT garden, id FROM unnest($1::text[], $2::bigint[]) AS wanted (garden, id))
      RETURNING garden, id),
  counted AS (
    UPDATE gardens SET plants_bound = plants_bound - lost.plants
      FROM (SELECT garden, count(*) AS plants FROM deleted GROUP BY garden) AS lost
      WHERE gardens.garden = lost.garden)
  SELECT garden, id FROM deleted`;

/**
 * With a quota, a garden without room, or that nobody has counted, has no bound afterwards. Its
 * plants then have no id, which the table refuses.
 */
export function createPlants(plantsMax: number | undefined): string {
  const isLimited = plantsMax !== undefined;
  const isEmpty = "(SELECT id FROM plants WHERE plants.garden = wanted.garden LIMIT 1) IS NULL";
  const bound = "gardens.plants_bound + excluded.last_id";
  const id = "last_id - after";
  return `
  WITH counted AS (
    INSERT INTO gardens (garden, last_id, plants_bound)
      SELECT garden, added,
          ${isLimited ? `CASE WHEN added <= ${plantsMax} AND ${isEmpty} THEN added END` : "NULL"}
        FROM unnest($1::text[], $2::bigint[]) AS wanted (garden, added)
      ON CONFLICT (garden) DO UPDATE SET last_id = gardens.last_id + excluded.last_id,
        plants_bound = ${isLimited ? `CASE WHEN ${bound} <= ${plantsMax} THEN ${bound} END` : bound}
      RETURNING garden, last_id, plants_bound),
  stored AS (
    INSERT INTO plants (garden, id, name, tag)
      SELECT garden, ${isLimited ? `CASE WHEN plants_bound IS NOT NULL THEN ${id} END` : id}, name, tag
        FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[])
          AS plant (garden, after, name, tag)
        JOIN counted USING (garden))
  SELECT garden, last_id FROM counted`;
}

export const findPlants = `
  SELECT garden, id FROM plants
    JOIN unnest($1::text[], $2::bigint[]) AS chosen (garden, id) USING (garden, id)`;

export const findKeys = `
  SELECT garden, key_hash, request_hash, plant_id, expires_at_ms FROM idempotency_hashes
    JOIN unnest($1::text[], $2::bytea[]) AS sent (garden, key_hash) USING (garden, key_hash)`;

/** Of versions before 0.4, which may still be writing them during an upgrade. */
export const findOlderKeys = `
  SELECT garden, key, request, plant_id, expires_at_ms FROM idempotency_keys
    JOIN unnest($1::text[], $2::text[]) AS sent (garden, key) USING (garden, key)`;

/** How much the gardens hold that may be full or that nobody has counted, up to one too many. */
export const counts: Readonly<Record<keyof GardenLimits, string>> = {
  plants: countOf("plants", "plants_bound"),
  keys: countOf("idempotency_hashes", "keys_bound"),
};

function countOf(table: string, bound: string): string {
  return `
  SELECT garden, (SELECT count(*) FROM (SELECT 1 FROM ${table} AS held
        WHERE held.garden = wanted.garden LIMIT $4::bigint + 1) AS counted) AS held
    FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS wanted (garden, added, is_recent)
    JOIN gardens USING (garden)
    WHERE ${bound} IS NULL OR (${bound} + added > $4::bigint AND NOT is_recent)`;
}

export function toCounts({ rows }: Rows): Map<string, number> {
  return new Map(rows.map(({ garden, held }) => [garden, Number(held)]));
}

export function toKeys({ rows }: Rows): StoredKey[] {
  return rows.map((row) => ({
    garden: row.garden,
    keyHash: row.key_hash?.toString("hex") ?? hashOf(row.key),
    requestHash: row.request_hash?.toString("hex") ?? hashOf(row.request),
    plantId: row.plant_id,
    expiresAtMs: Number(row.expires_at_ms),
  }));
}

export const insertPlants = `
  INSERT INTO plants (garden, id, name, tag)
     SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[])`;

export const updateGardens = `
  UPDATE gardens SET last_id = moved.last_id, plants_bound = moved.plants,
       keys_bound = moved.keys
     FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
       AS moved (garden, last_id, plants, keys)
     WHERE gardens.garden = moved.garden`;

export const insertKeys = `
  INSERT INTO idempotency_hashes (garden, key_hash, request_hash, plant_id, expires_at_ms)
     SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[])
     ON CONFLICT (garden, key_hash) DO UPDATE SET request_hash = excluded.request_hash,
       plant_id = excluded.plant_id, expires_at_ms = excluded.expires_at_ms`;

export interface PlantPlace {
  readonly garden: string;
  readonly id: PlantId;
}

export function placesOf(places: readonly PlantPlace[]): [gardens: string[], ids: PlantId[]] {
  return [places.map(({ garden }) => garden), places.map(({ id }) => id)];
}

/**
 * The runs of free ids after the last one that was assigned, of gardens where others may be taken.
 */
export function findGaps(
  client: ClientBase,
  demands: readonly { readonly garden: string; readonly ids: number }[],
  rowsMax: number,
  isUncounted: boolean,
): Promise<Rows> {
  return queryFor(
    client,
    demands,
    `SELECT garden, first, next FROM unnest($1::text[], $2::bigint[]) AS wanted (garden, ids)
       JOIN gardens USING (garden)
       CROSS JOIN LATERAL (
         SELECT last_id + 1 AS first, (SELECT min(id) FROM plants
             WHERE plants.garden = wanted.garden AND id > last_id) AS next
         UNION ALL
         (SELECT id + 1, next FROM (
             SELECT id, lead(id) OVER (ORDER BY id) AS next FROM plants
               WHERE plants.garden = wanted.garden AND id > last_id AND id <= $3
               ORDER BY id LIMIT $4) AS taken
           WHERE next IS NULL OR next > id + 1 ORDER BY id LIMIT $5)) AS gap
       WHERE last_id + ids > $6 ORDER BY first`,
    [
      demands.map(({ garden }) => garden),
      demands.map(({ ids }) => ids),
      assignedIdMax,
      rowsMax,
      Math.max(0, ...demands.map(({ ids }) => ids)),
      isUncounted ? 0 : countedIdMax,
    ],
  );
}

export function toGaps({ rows }: Rows): Map<string, Gap[]> {
  const gaps = rows.map(({ garden, first, next }) => ({
    garden,
    first,
    nextTaken: next ?? undefined,
  }));
  return Map.groupBy(gaps, ({ garden }) => garden);
}
