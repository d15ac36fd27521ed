/** Reads the events of gardens. */
import type { Database } from "bun:sqlite";
import type { EventReader } from "../../domain/ports.ts";
import { contentColumns, type EventRow, takeCharacters, toEvent } from "../rows.ts";
import { guard } from "./errors.ts";

export function createEventReader(database: Database): EventReader {
  const findLast = database.query<{ last_event: bigint }, [string]>(
    "SELECT last_event FROM gardens WHERE garden = ?",
  );
  const lastEvent = (garden: string) => Number(findLast.get(garden)?.last_event ?? 0);
  // `LIMIT +?`: see reader.ts.
  const find = database.query<EventRow, [string, number, number]>(
    `SELECT seq, at_ms, type, user, id, ${contentColumns} FROM events
       WHERE garden = ? AND seq > ? ORDER BY seq LIMIT +?`,
  );
  return {
    async readEvents(garden, after = 0, count, charactersMax) {
      return guard(() => {
        const last = lastEvent(garden);
        const rows = takeCharacters(find.iterate(garden, after, count), charactersMax);
        return { events: rows.map(toEvent), lastEvent: last };
      });
    },
    async findNewEvents(known) {
      const lasts = Array.from(
        known.keys(),
        (garden) => [garden, guard(() => lastEvent(garden))] as const,
      );
      return new Map(lasts.filter(([garden, last]) => last !== known.get(garden)));
    },
  };
}
