/** Storage in a PostgreSQL database, which any number of processes may serve at the same time. */
import { type Plant, type PlantId, plantIdMax, plantIdMin } from "../../domain/plant.ts";
import {
  defaultConnectionLimits,
  type OpenOptions,
  type PlantReader,
  type Storage,
} from "../../domain/storage.ts";
import { createErrorMapper } from "../map-errors.ts";
import { createBucketStorage } from "./buckets.ts";
import { mapError } from "./errors.ts";
import { migrate, readSchema, requireRights, requireStore } from "./migrate.ts";
import { PrimaryPool } from "./pool.ts";
import { ReadGroup } from "./read-group.ts";
import { createTokenStorage } from "./tokens.ts";
import { TransactionRunner } from "./transaction.ts";
import { parseUrl } from "./url.ts";
import { createWriter } from "./writer.ts";

const mapErrors = createErrorMapper(mapError);

/**
 * Fails with `unavailable`, in one line that names the database and no secret, if it cannot be
 * opened.
 */
export async function openPostgres(url: string, options: OpenOptions): Promise<Storage> {
  if (options.isOpenElsewhere) {
    const pool = new PrimaryPool(parseUrl(url), options.limits ?? defaultConnectionLimits);
    await pool.settle();
    return createStorage(pool, options);
  }
  const pool = await PrimaryPool.open(url, options.limits, async (client) => {
    if (options.mustExist) await requireStore(client);
    const isNew = (await readSchema(client)) === 0;
    await migrate(client);
    await requireRights(client);
    if (!isNew) return;
    const { rows } = await client.query("SELECT current_schema() AS name");
    options.onNewSchema?.(String(rows[0]?.name));
  });
  return createStorage(pool, options);
}

function createStorage(pool: PrimaryPool, { plantsMax }: OpenOptions): Storage {
  const runner = new TransactionRunner(pool);
  const { list, seek } = createReader(runner);
  const tokens = createTokenStorage(runner);
  const buckets = createBucketStorage(runner);
  const writer = createWriter(runner, plantsMax);
  return {
    list: mapErrors(list),
    seek: mapErrors(seek),
    // It would take a query, which costs as much as reading.
    version: () => undefined,
    apply: mapErrors(writer.apply),
    forgetKeys: mapErrors(writer.forgetKeys),
    noteTokenUses: mapErrors(writer.noteTokenUses),
    findToken: mapErrors(tokens.findToken),
    hasTokens: mapErrors(tokens.hasTokens),
    listTokens: mapErrors(tokens.listTokens),
    addToken: mapErrors(tokens.addToken),
    revokeToken: mapErrors(tokens.revokeToken),
    countTokenChanges: mapErrors(tokens.countTokenChanges),
    buckets: {
      pour: mapErrors(buckets.pour),
      forgetEmpty: mapErrors(buckets.forgetEmpty),
    },
    ping: mapErrors(() => pool.ping()),
    // Another thread makes connections of its own.
    share: () => undefined,
    close: () => pool.close(),
  };
}

interface List {
  readonly garden: string;
  /** The lowest id that it may hold. */
  readonly from: PlantId;
  readonly count: number;
}

/** Longer lists would hold up those that share their statement. */
const groupedPlantsMax = 128;

function createReader(runner: TransactionRunner): PlantReader {
  const lists = new ReadGroup(
    async (group: readonly List[], dueAtMs) => {
      const { rows } = await runner.read(
        `SELECT position, id, name, tag
           FROM unnest($1::text[], $2::bigint[], $3::int[]) WITH ORDINALITY
             AS list (garden, first, count, position)
           CROSS JOIN LATERAL (SELECT id, name, tag FROM plants
             WHERE plants.garden = list.garden AND id >= first ORDER BY id LIMIT count) AS plant
           ORDER BY position, id`,
        [
          group.map(({ garden }) => garden),
          group.map(({ from }) => from),
          group.map(({ count }) => count),
        ],
        dueAtMs,
      );
      const pages: Plant[][] = group.map(() => []);
      for (const { position, id, name, tag } of rows) {
        pages[Number(position) - 1]?.push({ id, name, tag });
      }
      return pages;
    },
    () => runner.dueAtMs(),
  );
  return {
    async list(garden, after, count, textMax) {
      if (textMax === undefined && count <= groupedPlantsMax && after !== plantIdMax) {
        return lists.read({ garden, from: after === undefined ? plantIdMin : after + 1n, count });
      }
      // `null` in place of `after` would cost the index.
      const from = after === undefined ? "" : "AND id > $3";
      const plants = `SELECT id, name, tag FROM plants
        WHERE garden = $1 ${from} ORDER BY id LIMIT $2`;
      const values: unknown[] = after === undefined ? [garden, count] : [garden, count, after];
      if (textMax === undefined) return (await runner.read(plants, values)).rows as Plant[];
      const { rows } = await runner.read(
        `SELECT id, name, tag FROM (
           SELECT *, row_number() OVER by_id AS row,
             sum(length(name) + length(tag)) OVER by_id AS text
           FROM (${plants}) AS plants WINDOW by_id AS (ORDER BY id)
         ) AS counted WHERE row = 1 OR text <= ${Math.floor(textMax)} ORDER BY id`,
        values,
      );
      return rows as Plant[];
    },
    async seek(garden, after, count) {
      const from = after === undefined ? "" : "AND id > $3";
      const { rows } = await runner.read(
        `SELECT max(id) AS id FROM
           (SELECT id FROM plants WHERE garden = $1 ${from} ORDER BY id LIMIT $2) AS sought`,
        after === undefined ? [garden, count] : [garden, count, after],
      );
      return (rows[0] as { id: PlantId | null }).id ?? undefined;
    },
  };
}
