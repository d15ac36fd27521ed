/** Reads the events of gardens. */

import type { EventReader } from "../../domain/ports.ts";
import { sharedQueue } from "../../limits/fair-queue.ts";
import { contentColumns, contentLength, toEvent } from "../rows.ts";
import type { TransactionRunner } from "./transaction.ts";

export function createEventReader(runner: TransactionRunner): EventReader {
  return {
    async readEvents(garden, after = 0, count, charactersMax) {
      const { rows } = await runner.read(garden, readStatement, [
        garden,
        after,
        count,
        charactersMax,
      ]);
      const events = rows.filter(({ seq }) => seq !== null).map(toEvent);
      return { events, lastEvent: Number(rows[0]?.last_event ?? 0) };
    },
    async findNewEvents(known) {
      const values = [[...known.keys()], [...known.values()]];
      const { rows } = await runner.read(sharedQueue("events"), findNewStatement, values);
      return new Map(rows.map(({ garden, last_event }) => [garden, Number(last_event)]));
    },
  };
}

/** One statement, so everything is as of the same moment. A garden without events is one row. */
const readStatement = `
  SELECT last_event, event.* FROM gardens
    LEFT JOIN LATERAL (
      SELECT * FROM (
        SELECT *, row_number() OVER by_seq AS row,
            sum(${contentLength}) OVER by_seq AS text
          FROM (SELECT seq, at_ms, type, "user", id, ${contentColumns} FROM events
            WHERE events.garden = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS page
          WINDOW by_seq AS (ORDER BY seq)
      ) AS counted WHERE row = 1 OR text <= $4
    ) AS event ON true
    WHERE gardens.garden = $1 ORDER BY seq`;

const findNewStatement = `
  SELECT known.garden, coalesce(last_event, 0) AS last_event
    FROM unnest($1::text[], $2::bigint[]) AS known (garden, seq)
    LEFT JOIN LATERAL (
      SELECT last_event FROM gardens WHERE gardens.garden = known.garden LIMIT 1) AS found ON true
    WHERE coalesce(last_event, 0) <> known.seq`;
