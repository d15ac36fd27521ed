/** Storage in a PostgreSQL database, which any number of processes may serve at the same time. */
import type { Plant, PlantId } from "../../domain/plant.ts";
import {
  defaultConnectionLimits,
  type OpenOptions,
  type PlantReader,
  type Storage,
} from "../../domain/storage.ts";
import { createErrorMapper } from "../map-errors.ts";
import { parseAddress } from "./address.ts";
import { Attempts } from "./attempts.ts";
import { createBucketStorage } from "./buckets.ts";
import { translate } from "./failure.ts";
import { migrate, readSchema, requireRights, requireStore } from "./migrate.ts";
import { openPrimary } from "./opening.ts";
import { Primary } from "./primary.ts";
import { createTokenStorage } from "./tokens.ts";
import { createWriter } from "./writer.ts";

const mapErrors = createErrorMapper(translate);

/**
 * Fails with `unavailable`, in one line that names the database and no secret, if it cannot be
 * opened.
 */
export async function openPostgres(url: string, options: OpenOptions): Promise<Storage> {
  if (options.isOpenElsewhere) {
    const primary = new Primary(parseAddress(url), options.limits ?? defaultConnectionLimits);
    await primary.settle();
    return createStorage(primary, options);
  }
  const primary = await openPrimary(url, options.limits, async (client) => {
    if (options.mustExist) await requireStore(client);
    const isNew = (await readSchema(client)) === 0;
    await migrate(client);
    await requireRights(client);
    if (!isNew) return;
    const { rows } = await client.query("SELECT current_schema() AS name");
    options.onNewSchema?.(String(rows[0]?.name));
  });
  return createStorage(primary, options);
}

function createStorage(primary: Primary, { plantsMax, limits }: OpenOptions): Storage {
  const attempts = new Attempts(primary);
  const { list, seek } = createReader(attempts);
  const { poolSize } = limits ?? defaultConnectionLimits;
  const tokens = createTokenStorage(attempts, poolSize);
  const buckets = createBucketStorage(attempts);
  const writer = createWriter(attempts, plantsMax);
  return {
    list: mapErrors(list),
    seek: mapErrors(seek),
    // To tell would take a query, which is as dear as reading.
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
    ping: mapErrors(() => primary.ping()),
    // Another thread makes connections of its own.
    share: () => undefined,
    close: () => primary.close(),
  };
}

function createReader(attempts: Attempts): PlantReader {
  return {
    async list(garden, after, count, textMax) {
      // `null` in place of `after` would cost the index.
      const from = after === undefined ? "" : "AND id > $3";
      const plants = `SELECT id, name, tag FROM plants
        WHERE garden = $1 ${from} ORDER BY id LIMIT $2`;
      const values: unknown[] = after === undefined ? [garden, count] : [garden, count, after];
      if (textMax === undefined) return (await attempts.serve(plants, values)).rows as Plant[];
      const { rows } = await attempts.serve(
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
      const { rows } =
        after === undefined
          ? await attempts.serve(
              `SELECT max(id) AS id FROM
                 (SELECT id FROM plants WHERE garden = $1 ORDER BY id LIMIT $2) AS sought`,
              [garden, count],
            )
          : await attempts.serve(
              `SELECT max(id) AS id FROM
                 (SELECT id FROM plants WHERE garden = $1 AND id > $2 ORDER BY id LIMIT $3) AS sought`,
              [garden, after, count],
            );
      return (rows[0] as { id: PlantId | null }).id ?? undefined;
    },
  };
}
