/** The rows of the tables as every engine returns them, and what the domain makes of them. */
import type { StoredKey } from "../domain/idempotency.ts";
import { contentFields, countCharacters, type Plant, withId } from "../domain/plant.ts";
import type { GardenEvent } from "../domain/ports.ts";
import type { GardenRow } from "../domain/rules.ts";
import type { TokenRecord } from "../domain/token.ts";
import { type GardenRecord, trialGarden } from "./storage.ts";

export type GardenCounters = Record<"last_id" | "plants" | "keys" | "last_event", bigint>;

export function toGardenRow(row: GardenCounters): GardenRow {
  return {
    lastId: row.last_id,
    plants: Number(row.plants),
    keys: Number(row.keys),
    lastEvent: Number(row.last_event),
  };
}

export interface GardenListRow {
  readonly garden: string;
  readonly plants: bigint;
  readonly last_event: bigint;
  readonly at_ms: bigint | null;
  /** SQLite has no truth values, and returns 0 or 1. */
  readonly is_empty: boolean | bigint;
}

export const listGardensStatement = `
  SELECT garden, plants, last_event,
      (SELECT at_ms FROM events
        WHERE events.garden = gardens.garden AND seq = last_event) AS at_ms,
      plants = 0 AND keys = 0
        AND NOT EXISTS (SELECT 1 FROM events WHERE events.garden = gardens.garden) AS is_empty
    FROM gardens WHERE garden <> '${trialGarden}' ORDER BY garden`;

export function toGardenRecord(row: GardenListRow): GardenRecord {
  return {
    garden: row.garden,
    plants: Number(row.plants),
    lastEvent: Number(row.last_event),
    lastEventAtMs: toTime(row.at_ms),
    isEmpty: Boolean(row.is_empty),
  };
}

export interface KeyEntriesRow {
  readonly entries: Uint8Array;
  readonly expires_at_ms: bigint;
}

export function toStoredKey({ entries, expires_at_ms }: KeyEntriesRow): StoredKey {
  return { entries, expiresAtMs: Number(expires_at_ms) };
}

/** Of a plant in the tables `plants` and `events`. */
export const contentColumns = contentFields.join(", ");

/** In PostgreSQL, which counts code points. */
export const contentLength = contentFields.map((field) => `length(${field})`).join(" + ");

export interface EventRow extends Plant, Pick<GardenEvent, "type" | "user"> {
  readonly seq: bigint;
  readonly at_ms: bigint;
}

export function toEvent(row: EventRow): GardenEvent {
  const { seq, type, at_ms, user } = row;
  return { seq: Number(seq), type, atMs: Number(at_ms), user, plant: withId(row.id, row) };
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

type TokenTexts = Pick<TokenRecord, "id" | "hash" | "user" | "garden" | "scope" | "note">;

export interface TokenRow
  extends TokenTexts,
    Record<"expires_at_ms" | "revoked_at_ms" | "last_used_at_ms", bigint | null> {
  readonly created_at_ms: bigint;
}

export function toTokenRecord(row: TokenRow): TokenRecord {
  const { id, hash, user, garden, scope, note } = row;
  return {
    ...{ id, hash, user, garden, scope, note },
    createdAtMs: Number(row.created_at_ms),
    expiresAtMs: toTime(row.expires_at_ms),
    revokedAtMs: toTime(row.revoked_at_ms),
    lastUsedAtMs: toTime(row.last_used_at_ms),
  };
}

function toTime(value: bigint | null): number | undefined {
  return value === null ? undefined : Number(value);
}
