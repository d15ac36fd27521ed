/** Lists gardens, and deletes one in small transactions: on every engine with the same steps. */
import { forgottenMax } from "./event-cleanup.ts";
import type { GardenRecord } from "./storage.ts";

export interface GardenListRow {
  readonly garden: string;
  readonly plants: bigint;
  readonly last_event: bigint;
  readonly at_ms: bigint | null;
}

export const listGardensStatement = `
  SELECT garden, plants, last_event, (SELECT at_ms FROM events
      WHERE events.garden = gardens.garden AND seq = last_event) AS at_ms
    FROM gardens ORDER BY garden`;

export function toGardenRecord({ garden, plants, last_event, at_ms }: GardenListRow): GardenRecord {
  return {
    garden,
    plants: Number(plants),
    lastEvent: Number(last_event),
    lastEventAtMs: at_ms === null ? undefined : Number(at_ms),
  };
}

/** What belongs to a garden: the table, its key within the garden, and where it's counted. */
export const gardenTables = [
  { table: "events", key: "seq", counter: undefined },
  { table: "plants", key: "id", counter: "plants" },
  { table: "idempotency_keys", key: "key", counter: "keys" },
] as const;

type GardenTable = (typeof gardenTables)[number];

/** Deletes some rows of a garden. */
export const deleteRowsStatement = ({ table, key }: GardenTable) => `
  DELETE FROM ${table} WHERE garden = $1 AND ${key} IN (
    SELECT ${key} FROM ${table} WHERE garden = $1 ORDER BY ${key} LIMIT ${forgottenMax})`;

export const findLastEventStatement = "SELECT last_event FROM gardens WHERE garden = $1";

/** Every write moves `last_event`: if it's what it was before the rows were deleted, all are. */
export const deleteGardenStatement = "DELETE FROM gardens WHERE garden = $1 AND last_event = $2";

interface Steps {
  /** Runs `findLastEventStatement`. */
  findLastEvent(): Promise<bigint | undefined>;
  /** Deletes some rows of a table, and counts them, in one transaction. Returns how many. */
  deleteRows(table: GardenTable): Promise<number>;
  /** Runs `deleteGardenStatement`. Returns whether the row was there. */
  deleteGarden(lastEvent: bigint): Promise<boolean>;
}

/** See `Storage.deleteGarden`. */
export async function deleteGarden(steps: Steps): Promise<boolean> {
  for (let isFound = false; ; isFound = true) {
    const lastEvent = await steps.findLastEvent();
    if (lastEvent === undefined) return isFound;
    for (const table of gardenTables) while ((await steps.deleteRows(table)) > 0);
    if (await steps.deleteGarden(lastEvent)) return true;
  }
}
