/** Storage in a PostgreSQL database, which any number of processes may serve at the same time. */

import { contentFields, type Plant, type PlantContent, type PlantId } from "../../domain/plant.ts";
import type { Order, PlantReader } from "../../domain/ports.ts";
import { Batcher } from "../../limits/batcher.ts";
import { noGarden } from "../../limits/fair-queue.ts";
import { contentLength } from "../rows.ts";
import { defaultConnectionLimits, idAfter, type OpenOptions, type Storage } from "../storage.ts";
import type { ConnectionMode } from "./connect.ts";
import { createEventReader } from "./events.ts";
import { createGardenStorage } from "./gardens.ts";
import { migrate, requireRights, requireStore } from "./migrate.ts";
import { createTokenStorage } from "./tokens.ts";
import { TransactionRunner } from "./transaction.ts";
import { createWriter } from "./writer.ts";

/**
 * Fails with `unavailable`, in one line that names the database and no secret, if it cannot be
 * opened.
 */
export async function openPostgres(url: string, options: OpenOptions): Promise<Storage> {
  const { limits = defaultConnectionLimits } = options;
  if (options.share !== undefined) {
    const runner = TransactionRunner.create(url, limits, options.share as ConnectionMode);
    // So that the first request finds a connection. The database may be away just now.
    await runner.ping().catch(() => {});
    return createStorage(runner, options, options.share as ConnectionMode);
  }
  const { runner, mode } = await TransactionRunner.open(url, limits, async (client) => {
    if (options.mustExist) await requireStore(client);
    const isNew = await migrate(client);
    await requireRights(client);
    if (!isNew) return;
    const { rows } = await client.query("SELECT current_schema() AS name");
    options.onNewStore?.(String(rows[0]?.name));
  });
  return createStorage(runner, options, mode);
}

/** Other threads open their own connections, by the same mode. */
function createStorage(
  runner: TransactionRunner,
  options: OpenOptions,
  mode: ConnectionMode,
): Storage {
  return {
    ...createReader(runner, options.onRead),
    ...createEventReader(runner),
    ...createWriter(runner, options),
    ...createTokenStorage(runner),
    ...createGardenStorage(runner),
    // It would take a query, which costs as much as reading.
    version: () => undefined,
    pool: () => runner.usage(),
    ping: () => runner.ping(),
    // The log and the disk belong to the server: only roles with more rights can see them.
    async measure() {
      const { rows } = await runner.query("SELECT pg_database_size(current_database()) AS bytes");
      return { database: Number(rows[0]?.bytes) };
    },
    share: () => ({ state: mode, transfer: [] }),
    close: () => runner.close(),
  };
}

interface List {
  readonly garden: string;
  readonly tag: string | undefined;
  readonly first: PlantId;
  readonly count: number;
}

/** A longer list has a statement of its own: many of them would hold up the event loop together. */
const batchedPlantsMax = 64;

/** How the plants of a `list` are found, from `first` on, in one order. */
interface Reads {
  /** In its whole garden. */
  readonly inGarden: string;
  /**
   * Only its tag. A range over (tag, id), not `tag = …`: only plants_by_tag has that order, so the
   * planner can't scan the whole garden because it thinks that the tag is common.
   */
  readonly inTag: string;
  readonly byId: string;
}

const reads: Readonly<Record<Order, Reads>> = {
  asc: {
    inGarden: "plants.garden = list.garden AND id >= first ORDER BY id",
    inTag: `plants.garden = list.garden AND (plants.tag COLLATE "C", id) >= (list.tag, first)
      AND plants.tag COLLATE "C" <= list.tag ORDER BY plants.tag COLLATE "C", id`,
    byId: "ORDER BY id",
  },
  desc: {
    inGarden: "plants.garden = list.garden AND id <= first ORDER BY id DESC",
    inTag: `plants.garden = list.garden AND (plants.tag COLLATE "C", id) <= (list.tag, first)
      AND plants.tag COLLATE "C" >= list.tag ORDER BY plants.tag COLLATE "C" DESC, id DESC`,
    byId: "ORDER BY id DESC",
  },
};

/** A list's columns. Not named like a plant's, because a list has a tag of its own. */
const listed = ["ids", ...contentFields.map((field) => `${field}s`)];
const plantColumns = ["id", ...contentFields].map((field) => `plants.${field}`).join(", ");

/** One row for each list, with its columns as JSON, which parses faster than many rows. */
function asColumns({ byId }: Reads): string {
  const columns = ["id::text", ...contentFields].map(
    (column, index) => `array_to_json(array_agg(plant.${column} ${byId})) AS ${listed[index]}`,
  );
  return columns.join(", ");
}

function batchLists(
  runner: TransactionRunner,
  order: Order,
  range: "inGarden" | "inTag",
): Batcher<List, Plant[]> {
  const read = reads[order];
  return new Batcher(async (batch: readonly List[]) => {
    const { rows } = await runner.read(
      `${noGarden}lists`,
      `SELECT ${listed.join(", ")}
         FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
           AS list (garden, tag, first, count, position)
         CROSS JOIN LATERAL (
           SELECT ${asColumns(read)} FROM (SELECT * FROM (
               SELECT ${plantColumns} FROM plants WHERE ${read[range]} LIMIT $5) AS found
             ${read.byId} LIMIT count) AS plant) AS page
         ORDER BY position`,
      [
        batch.map(({ garden }) => garden),
        batch.map(({ tag }) => tag),
        batch.map(({ first }) => first),
        batch.map(({ count }) => count),
        // Bounds the planner's estimate; otherwise large gardens trigger just-in-time compilation.
        Math.max(...batch.map(({ count }) => count)),
      ],
    );
    return rows.map(toPlants);
  });
}

const countStatement = `
  SELECT tag, count(*) AS plants, max(id) AS last_id FROM (
    SELECT tag, id FROM plants WHERE garden = $1 AND (tag COLLATE "C", id) >= ($2::text, $3::bigint)
      ORDER BY tag COLLATE "C", id LIMIT $4) AS counted
    GROUP BY tag ORDER BY tag COLLATE "C"`;

type Columns = Readonly<Record<"ids" | `${keyof PlantContent}s`, string[] | null>>;

/** If the list is empty, its columns are null. */
function toPlants({ ids, names, tags }: Columns): Plant[] {
  return (ids ?? []).map((id, index) => ({
    id: BigInt(id),
    name: names?.[index] ?? "",
    tag: tags?.[index] ?? "",
  }));
}

function createReader(
  runner: TransactionRunner,
  onRead: OpenOptions["onRead"] = () => {},
): PlantReader {
  const batched = (order: Order) => ({
    inGarden: batchLists(runner, order, "inGarden"),
    inTag: batchLists(runner, order, "inTag"),
  });
  const lists = { asc: batched("asc"), desc: batched("desc") };
  const source =
    "plants, (SELECT $1::text AS garden, $2::text AS tag, $3::bigint AS first) AS list";

  async function timed<Result>(read: Promise<Result>): Promise<Result> {
    const startedAtMs = performance.now();
    const result = await read;
    onRead(performance.now() - startedAtMs);
    return result;
  }

  return {
    async list(garden, after, count, { charactersMax, tag, order = "asc" } = {}) {
      const first = idAfter(after, order);
      if (first === undefined) return [];
      const range = tag === undefined ? "inGarden" : "inTag";
      if (charactersMax === undefined && count <= batchedPlantsMax) {
        return timed(lists[order][range].request(garden, { garden, tag, first, count }));
      }
      const read = reads[order];
      const { rows } = await timed(
        runner.read(
          garden,
          `SELECT ${asColumns(read)} FROM (
             SELECT *, row_number() OVER by_id AS row,
               sum(${contentLength}) OVER by_id AS text
             FROM (SELECT ${plantColumns} FROM ${source}
               WHERE ${read[range]} LIMIT $4) AS page
             WINDOW by_id AS (${read.byId})
           ) AS plant WHERE row = 1 OR text <= $5`,
          [garden, tag, first, count, Math.floor(charactersMax ?? Number.MAX_SAFE_INTEGER)],
        ),
      );
      return toPlants(rows[0]);
    },
    async countByTag(garden, { tag, id }, count) {
      const { rows } = await timed(runner.read(garden, countStatement, [garden, tag, id, count]));
      return rows.map((row) => ({ tag: row.tag, plants: Number(row.plants), lastId: row.last_id }));
    },
    async countPlants(garden) {
      const text = "SELECT plants FROM gardens WHERE garden = $1";
      const { rows } = await runner.read(garden, text, [garden]);
      return Number(rows[0]?.plants ?? 0);
    },
  };
}
