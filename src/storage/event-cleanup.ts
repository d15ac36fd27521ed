/**
 * Forgets events that are too old, and in a garden with a quota, events beyond its maximum. Both
 * engines use these statements, in small steps.
 */
import { historyMaxOf } from "../domain/rules.ts";

/** Of keys or events in one transaction: few, so that waiting writes aren't held up. */
export const forgottenMax = 1_000;
const gardensPerStep = 500;

/**
 * How many event numbers are skipped when a history ends: after a garden was deleted, and after a
 * backup was restored. Every earlier position is `gone` then.
 */
export const skippedEvents = 1_000_000;

/** A garden's last event, and its oldest that is kept, if any. */
export interface OldestEventRow {
  readonly garden: string;
  readonly last_event: bigint;
  readonly seq: bigint | null;
  readonly at_ms: bigint | null;
}

/** Events from before that time, and up to that number. */
export type ForgottenEvents = [garden: string, beforeMs: number, lastSeq: number];

interface Steps {
  /** Runs `oldestEventsStatement`. */
  find(after: string): Promise<readonly OldestEventRow[]>;
  /** Runs `forgetEventsStatement`, and returns how many events it has deleted. */
  forget(...values: ForgottenEvents): Promise<number>;
}

/** See `PlantStorage.forgetEvents`. */
export async function forgetEvents(
  steps: Steps,
  plantsMax: number | undefined,
  beforeMs: number,
  after: string,
): Promise<string | undefined> {
  const rows = await steps.find(after);
  for (const { garden, last_event, seq, at_ms } of rows) {
    if (seq === null || at_ms === null) continue;
    const lastSeq = plantsMax === undefined ? 0 : Number(last_event) - historyMaxOf(plantsMax);
    if (at_ms >= beforeMs && seq > lastSeq) continue;
    while ((await steps.forget(garden, beforeMs, lastSeq)) === forgottenMax);
  }
  return rows.at(-1)?.garden;
}

const oldest = "FROM events WHERE events.garden = gardens.garden ORDER BY seq LIMIT 1";

export const oldestEventsStatement = `
  SELECT garden, last_event, (SELECT seq ${oldest}) AS seq, (SELECT at_ms ${oldest}) AS at_ms
    FROM gardens WHERE garden > $1 ORDER BY garden LIMIT ${gardensPerStep}`;

/** Up to the first one to keep: a later one may be older by the clock of another machine. */
export const forgetEventsStatement = `
  DELETE FROM events WHERE garden = $1 AND seq < (
    SELECT coalesce(min(seq) FILTER (WHERE at_ms >= $2 AND seq > $3), max(seq) + 1) FROM (
      SELECT seq, at_ms FROM events WHERE garden = $1 ORDER BY seq LIMIT ${forgottenMax}) AS oldest)`;
