/** Reads the plants of gardens: lists, and counts by tag. Short lists share a round trip. */
import { contentFields, type Plant, type PlantContent, type PlantId } from "../../domain/plant.ts";
import type { Order, PlantReader } from "../../domain/ports.ts";
import { Batcher } from "../../limits/batcher.ts";
import { sharedQueue } from "../../limits/fair-queue.ts";
import { contentLength } from "../rows.ts";
import { idAfter, type OpenOptions } from "../storage.ts";
import type { TransactionRunner } from "./transaction.ts";

/** The parameters of a statement that lists plants. */
interface List {
  readonly garden: string;
  readonly tag: string | undefined;
  readonly first: PlantId;
  readonly count: number;
}

/** A longer list has a statement of its own: many of them would hold up the event loop together. */
const batchedPlantsMax = 64;

/** How one kind of list finds its plants, from `list.first` on. */
interface ListKind {
  readonly plants: string;
  readonly byId: string;
}

const wholeAscending: ListKind = {
  plants: "plants.garden = list.garden AND id >= first ORDER BY id",
  byId: "ORDER BY id",
};

const wholeDescending: ListKind = {
  plants: "plants.garden = list.garden AND id <= first ORDER BY id DESC",
  byId: "ORDER BY id DESC",
};

/**
 * A range over (tag, id), not `tag = …`: only plants_by_tag has that order, so the planner can't
 * scan the whole garden because it thinks that the tag is common.
 */
const taggedAscending: ListKind = {
  plants: `plants.garden = list.garden AND (plants.tag COLLATE "C", id) >= (list.tag, first)
      AND plants.tag COLLATE "C" <= list.tag ORDER BY plants.tag COLLATE "C", id`,
  byId: "ORDER BY id",
};

const taggedDescending: ListKind = {
  plants: `plants.garden = list.garden AND (plants.tag COLLATE "C", id) <= (list.tag, first)
      AND plants.tag COLLATE "C" >= list.tag ORDER BY plants.tag COLLATE "C" DESC, id DESC`,
  byId: "ORDER BY id DESC",
};

/** A list's columns. Not named like a plant's, because a list has a tag of its own. */
const listed = ["ids", ...contentFields.map((field) => `${field}s`)];
const plantColumns = ["id", ...contentFields].map((field) => `plants.${field}`).join(", ");

/** One row for each list, with its columns as JSON, which parses faster than many rows. */
function asColumns({ byId }: ListKind): string {
  const columns = ["id::text", ...contentFields].map(
    (column, index) => `array_to_json(array_agg(plant.${column} ${byId})) AS ${listed[index]}`,
  );
  return columns.join(", ");
}

/** Many short lists of one kind in one statement. */
const batchStatement = (kind: ListKind) => `
  SELECT ${listed.join(", ")}
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
      AS list (garden, tag, first, count, position)
    CROSS JOIN LATERAL (
      SELECT ${asColumns(kind)} FROM (SELECT * FROM (
          SELECT ${plantColumns} FROM plants WHERE ${kind.plants} LIMIT $5) AS page
        ${kind.byId} LIMIT count) AS plant) AS columns
    ORDER BY position`;

/** One list, up to so many characters. */
const longStatement = (kind: ListKind) => `
  SELECT ${asColumns(kind)} FROM (
    SELECT *, row_number() OVER by_id AS row, sum(${contentLength}) OVER by_id AS text
      FROM (
        SELECT ${plantColumns}
          FROM plants, (SELECT $1::text AS garden, $2::text AS tag, $3::bigint AS first) AS list
          WHERE ${kind.plants} LIMIT $4) AS page
      WINDOW by_id AS (${kind.byId})
    ) AS plant WHERE row = 1 OR text <= $5`;

const countStatement = `
  SELECT tag, count(*) AS plants, max(id) AS last_id FROM (
    SELECT tag, id FROM plants WHERE garden = $1 AND (tag COLLATE "C", id) >= ($2::text, $3::bigint)
      ORDER BY tag COLLATE "C", id LIMIT $4) AS counted
    GROUP BY tag ORDER BY tag COLLATE "C"`;

/** Lists of one kind: short ones in batches, long ones alone. */
class ListReader {
  readonly #batches: Batcher<List, Plant[]>;
  readonly #longStatement: string;

  constructor(
    private readonly runner: TransactionRunner,
    kind: ListKind,
  ) {
    const statement = batchStatement(kind);
    this.#batches = new Batcher((lists) => this.#readBatch(statement, lists));
    this.#longStatement = longStatement(kind);
  }

  async read(list: List, charactersMax: number | undefined): Promise<Plant[]> {
    const { garden, tag, first, count } = list;
    if (charactersMax === undefined && count <= batchedPlantsMax) {
      return this.#batches.request(garden, list);
    }
    const textMax = Math.floor(charactersMax ?? Number.MAX_SAFE_INTEGER);
    const values = [garden, tag, first, count, textMax];
    const { rows } = await this.runner.read(garden, this.#longStatement, values);
    return toPlants(rows[0]);
  }

  async #readBatch(statement: string, lists: readonly List[]): Promise<Plant[][]> {
    const { rows } = await this.runner.read(sharedQueue("lists"), statement, [
      lists.map(({ garden }) => garden),
      lists.map(({ tag }) => tag),
      lists.map(({ first }) => first),
      lists.map(({ count }) => count),
      // Bounds the planner's estimate of how many rows a list has.
      Math.max(...lists.map(({ count }) => count)),
    ]);
    return rows.map(toPlants);
  }
}

type Columns = Readonly<Record<"ids" | `${keyof PlantContent}s`, string[] | null>>;

/** If the list is empty, its columns are null. */
function toPlants({ ids, names, tags }: Columns): Plant[] {
  return (ids ?? []).map((id, index) => ({
    id: BigInt(id),
    name: names?.[index] ?? "",
    tag: tags?.[index] ?? "",
  }));
}

export function createReader(
  runner: TransactionRunner,
  onRead: OpenOptions["onRead"] = () => {},
): PlantReader {
  const whole: Record<Order, ListReader> = {
    asc: new ListReader(runner, wholeAscending),
    desc: new ListReader(runner, wholeDescending),
  };
  const tagged: Record<Order, ListReader> = {
    asc: new ListReader(runner, taggedAscending),
    desc: new ListReader(runner, taggedDescending),
  };

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
      const lists = tag === undefined ? whole : tagged;
      return timed(lists[order].read({ garden, tag, first, count }, charactersMax));
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
