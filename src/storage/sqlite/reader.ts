/** Reads the plants of gardens: lists, and counts by tag. */
import type { Database } from "bun:sqlite";
import type { Plant } from "../../domain/plant.ts";
import type { CountedTag, Order, PlantReader } from "../../domain/ports.ts";
import { contentColumns, takeCharacters } from "../rows.ts";
import { idAfter, type OpenOptions } from "../storage.ts";
import { guard } from "./errors.ts";

type Value = string | bigint | number;

export function createReader(
  database: Database,
  onRead: OpenOptions["onRead"] = () => {},
): PlantReader {
  const prepare = (order: Order, source: string) => {
    const range = order === "asc" ? ">= ? ORDER BY id" : "<= ? ORDER BY id DESC";
    // `LIMIT +?`: with a bare parameter SQLite plans the query again each time.
    return database.query<Plant, Value[]>(
      `SELECT id, ${contentColumns} FROM ${source} AND id ${range} LIMIT +?`,
    );
  };
  const inGarden = "plants WHERE garden = ?";
  const inTag = "plants INDEXED BY plants_by_tag WHERE garden = ? AND tag = ?";
  const lists = {
    asc: { all: prepare("asc", inGarden), tagged: prepare("asc", inTag) },
    desc: { all: prepare("desc", inGarden), tagged: prepare("desc", inTag) },
  };
  const findCount = database.query<{ plants: bigint }, [string]>(
    "SELECT plants FROM gardens WHERE garden = ?",
  );
  const countByTag = database.query<CountedTag, Value[]>(
    `SELECT tag, count(*) AS plants, max(id) AS lastId FROM (
       SELECT tag, id FROM plants INDEXED BY plants_by_tag
         WHERE garden = ? AND (tag, id) >= (?, ?) ORDER BY tag, id LIMIT +?)
       GROUP BY tag ORDER BY tag`,
  );

  function timed<Result>(read: () => Result): Result {
    const startedAtMs = performance.now();
    const result = guard(read);
    onRead(performance.now() - startedAtMs);
    return result;
  }

  return {
    async countPlants(garden) {
      return guard(() => Number(findCount.get(garden)?.plants ?? 0n));
    },
    list(garden, after, count, { charactersMax, tag, order = "asc" } = {}) {
      const first = idAfter(after, order);
      if (first === undefined) return [];
      const { all, tagged } = lists[order];
      const statement = tag === undefined ? all : tagged;
      const values = tag === undefined ? [garden, first, count] : [garden, tag, first, count];
      return timed(() =>
        charactersMax === undefined
          ? statement.all(...values)
          : takeCharacters(statement.iterate(...values), charactersMax),
      );
    },
    async countByTag(garden, { tag, id }, count) {
      const counted = timed(() => countByTag.all(garden, tag, id, count));
      return counted.map((each) => ({ ...each, plants: Number(each.plants) }));
    },
  };
}
