/** Reads the events of gardens. */
import type { Database } from "bun:sqlite";
import { countCharacters, type Plant } from "../../domain/plant.ts";
import type { EventReader } from "../../domain/ports.ts";
import { contentColumns, type EventRow, toEvent } from "../rows.ts";

export function createEventReader(database: Database): EventReader {
  const findLast = database.query<{ last_event: bigint }, [string]>(
    "SELECT last_event FROM gardens WHERE garden = ?",
  );
  const lastEvent = (garden: string) => Number(findLast.get(garden)?.last_event ?? 0);
  // `LIMIT +?`: see engine.ts.
  const find = database.query<EventRow, [string, number, number]>(
    `SELECT seq, at_ms, type, user, id, ${contentColumns} FROM events
       WHERE garden = ? AND seq > ? ORDER BY seq LIMIT +?`,
  );
  return {
    async readEvents(garden, after = 0, count, charactersMax) {
      const last = lastEvent(garden);
      const rows = takeCharacters(find.iterate(garden, after, count), charactersMax);
      return { events: rows.map(toEvent), lastEvent: last };
    },
    async findNewEvents(known) {
      const found = new Map<string, number>();
      for (const [garden, seq] of known) {
        const last = lastEvent(garden);
        if (last !== seq) found.set(garden, last);
      }
      return found;
    },
  };
}

/** Reads row by row and stops once there's enough: more rows would only be garbage. */
export function takeCharacters<Row extends Plant | EventRow>(
  rows: Iterable<Row>,
  charactersMax: number,
): Row[] {
  const taken: Row[] = [];
  let characters = 0;
  for (const row of rows) {
    characters += countCharacters(row);
    if (characters > charactersMax && taken.length > 0) break;
    taken.push(row);
  }
  return taken;
}
