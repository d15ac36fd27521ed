/** Reads events, and finds the ones that are old enough to be forgotten. */
import type { Database } from "bun:sqlite";
import type { Plant } from "../../domain/plant.ts";
import type { EventReader, GardenEvent } from "../../domain/storage.ts";

const gardensPerStep = 500;

interface SqliteEvents extends EventReader {
  /** The next gardens after `after`, and whether their oldest event happened before `beforeMs`. */
  findOld(beforeMs: number, after: string): readonly { garden: string; isOld: bigint }[];
}

type EventRow = Omit<GardenEvent, "seq" | "atMs"> & Record<"seq" | "at_ms", bigint>;

export function createEventReader(database: Database): SqliteEvents {
  const findLast = database.query<{ last_event: bigint }, [string]>(
    "SELECT last_event FROM gardens WHERE garden = ?",
  );
  const lastEvent = (garden: string) => Number(findLast.get(garden)?.last_event ?? 0);
  // `LIMIT +?`: see engine.ts.
  const find = database.query<EventRow, [string, number, number]>(
    `SELECT seq, at_ms, type, user, id, name, tag FROM events
       WHERE garden = ? AND seq > ? ORDER BY seq LIMIT +?`,
  );
  const findOld = database.query<{ garden: string; isOld: bigint }, [number, string]>(
    `SELECT garden, coalesce((SELECT at_ms FROM events WHERE events.garden = gardens.garden
         ORDER BY seq LIMIT 1) < ?, FALSE) AS isOld
       FROM gardens WHERE garden > ? ORDER BY garden LIMIT ${gardensPerStep}`,
  );
  return {
    async readEvents(garden, after = 0, count, textMax) {
      const last = lastEvent(garden);
      const rows = takeText(find.iterate(garden, after, count), textMax);
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
    findOld: (beforeMs, after) => findOld.all(beforeMs, after),
  };
}

function toEvent({ seq, at_ms, type, user, id, name, tag }: EventRow): GardenEvent {
  return { seq: Number(seq), type, atMs: Number(at_ms), user, id, name, tag };
}

/** Reads row by row and stops once there's enough text: more rows would only be garbage. */
export function takeText<Row extends Plant | EventRow>(
  rows: Iterable<Row>,
  textMax: number,
): Row[] {
  const taken: Row[] = [];
  let text = 0;
  for (const row of rows) {
    text += row.name.length + row.tag.length;
    if (text > textMax && taken.length > 0) break;
    taken.push(row);
  }
  return taken;
}
